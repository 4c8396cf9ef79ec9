"""64-bit ARM Linux on a machine of another kind: its system, its Python, and qemu to run both.

``python3 -m tools.arm64 -h`` tells the commands. All of it lies in ``build/arm64``; nothing is
mounted, registered with the kernel, or installed into this system.
"""
