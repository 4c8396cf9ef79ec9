"""What TensorFlow Lite and LiteRT print about themselves, and no reader of a command needs."""

from __future__ import annotations

import sys

XNNPACK = b"INFO: Created TensorFlow Lite XNNPACK delegate for CPU."

# What LiteRT tells of its environments, and warnings about NPUs, which are not used here.
_TOLD = (
    b"INFO: [",
    b"VERBOSE: [",
    XNNPACK,
    b"WARNING: [npu_registry.cc",
    b"WARNING: [compiler_plugin.cc",
)
_MORE = "\N{BOX DRAWINGS LIGHT UP AND RIGHT}".encode()  # a message goes on in the next line


def pass_on() -> None:
    """Write standard input to standard output, without such lines."""
    is_told = False
    for line in sys.stdin.buffer:
        is_told = line.startswith(_TOLD) or (is_told and line.startswith(_MORE))
        if not is_told:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
