"""How commands end: exit codes, and one line on standard error."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import typer

from clgpu_delegate.base import interrupts
from clgpu_delegate.base.rendering import one_line
from clgpu_delegate.errors import (
    BuildError,
    ClgpuError,
    DeviceError,
    FileError,
    ModelError,
    OpenCLError,
    OptionError,
    RuntimeNotFoundError,
)

DONE, FAILED, USAGE, NO_DEVICE, FILE, FINDING = range(6)
INTERRUPTED = interrupts.INTERRUPTED
READER_GONE = 141  # 128 + SIGPIPE

MEANINGS = {
    DONE: "done",
    FAILED: "failed",
    USAGE: "wrong usage, or an option that is not allowed",
    NO_DEVICE: "no usable OpenCL device or TensorFlow Lite runtime, or its driver failed",
    FILE: "a file or model that cannot be read or written, or standard output is closed",
    FINDING: "finished, but found a problem (a broken set-up, wrong or unverified results)",
    INTERRUPTED: "interrupted (Ctrl-C)",
    READER_GONE: "the reader of the output has closed it (a broken pipe)",
}

_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (OptionError, USAGE),
    (DeviceError, NO_DEVICE),
    (OpenCLError, NO_DEVICE),
    (BuildError, NO_DEVICE),
    (RuntimeNotFoundError, NO_DEVICE),
    (FileError, FILE),
    (ModelError, FILE),
)

_OUTPUT_FAILS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # of standard output

# Some versions of Typer contain click, others depend on it; this works with both.
_ClickException = typer.BadParameter.__mro__[2]


def answer(app: typer.Typer, arguments: Sequence[str] | None = None) -> int:
    """Run a command, those of the process if None, and return its exit code.

    An error is one line on standard error; with ``--json`` it is an object with ``error``,
    ``kind`` (the class of the exception) and ``exit_code``.
    """
    words = (sys.argv[1:] if arguments is None else list(arguments)) or ["--help"]
    is_output_closed = _closed("stdout", 1)  # before the next file takes its place
    if _closed("stderr", 2):  # errors are for nobody then
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if is_output_closed:
        # The next file would get what drivers print.
        message = "cannot write the output: standard output is closed"
        return _say(message, "OSError", FILE, "--json" in words)
    try:
        with _second_interrupt_ends():
            code = app(words, prog_name="clgpu", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        _stop_writing()
        return READER_GONE
    except SystemExit as error:
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        _stop_writing()  # rich ends the process where Typer prints help
        return READER_GONE
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:
        return _report(error, as_json="--json" in words)
    if code == INTERRUPTED:  # some versions of Typer catch KeyboardInterrupt
        return _say("interrupted", "KeyboardInterrupt", INTERRUPTED, "--json" in words)
    return code if isinstance(code, int) else DONE


def _closed(name: str, descriptor: int) -> bool:
    """Whether the process was started without a stream (``>&-``); tests replace streams."""
    if getattr(sys, name) is not None:
        return False
    with contextlib.suppress(OSError):
        os.fstat(descriptor)
        return False
    return True


def _report(error: Exception, as_json: bool) -> int:
    kind = type(error).__name__
    if isinstance(error, _ClickException):
        context = getattr(error, "ctx", None)
        help_ = f"; see {context.command_path} --help" if context else ""
        message = error.format_message().rstrip(".") + help_  # type: ignore[attr-defined]
        return _say(message, kind, USAGE, as_json)
    if isinstance(error, ClgpuError):
        code = next((code for type_, code in _CODES if isinstance(error, type_)), FAILED)
        return _say(str(error), kind, code, as_json)
    if isinstance(error, OSError) and error.filename is not None:
        return _say(f"{error.filename}: {error.strerror}", kind, FILE, as_json)
    if isinstance(error, OSError) and error.errno in _OUTPUT_FAILS:
        _stop_writing()
        return _say(f"cannot write the output: {error.strerror}", kind, FILE, as_json)
    if isinstance(error, MemoryError):
        return _say(f"there is not enough memory: {error}".rstrip(": "), kind, FAILED, as_json)
    if os.environ.get("CLGPU_TRACEBACK"):
        raise error
    hint = "a bug in clgpu_delegate, please report it; CLGPU_TRACEBACK=1 shows where"
    return _say(f"{kind}: {error} ({hint})", kind, FAILED, as_json)


def _say(message: str, kind: str, code: int, as_json: bool) -> int:
    message = one_line(message)
    if as_json:
        line = json.dumps({"error": message, "kind": kind, "exit_code": code})
    else:
        line = f"clgpu: {message}"
    print(line, file=sys.stderr)
    return code


def _stop_writing() -> None:
    # Python flushes standard output again when it ends, and would print an error.
    with Path(os.devnull).open("w") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


@contextlib.contextmanager
def _second_interrupt_ends() -> Iterator[None]:
    """Let the first Ctrl-C raise an exception; the second ends the process, as drivers may hang."""

    def interrupt(*_: object) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    is_ours = before is signal.default_int_handler or interrupts.is_watching()
    if not is_ours or not _in_main_thread():
        yield
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
