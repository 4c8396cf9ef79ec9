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
# A warning about each input and output that LiteRT keeps in its own memory; an empty line follows.
_OWN_MEMORY = (b"WARNING: [compiled_model.cc", b"Failed to get buffer requirements for tensor")
_MORE = "\N{BOX DRAWINGS LIGHT UP AND RIGHT}".encode()  # a message goes on in the next line


def pass_on() -> None:
    """Write standard input to standard output, without such lines."""
    is_told = False
    for line in sys.stdin.buffer:
        goes_on = line.startswith(_MORE) or not line.strip()
        is_told = (
            line.startswith(_TOLD)
            or (line.startswith(_OWN_MEMORY[0]) and _OWN_MEMORY[1] in line)
            or (is_told and goes_on)
        )
        if not is_told:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
