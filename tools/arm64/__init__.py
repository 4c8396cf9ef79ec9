"""64-bit ARM Linux on a machine of another kind: the system, its Python, and qemu to run both.

``python3 -m tools.arm64 -h`` lists the commands. All files are in ``build/arm64``; nothing is
mounted, registered with the kernel, or installed into this system.
"""
