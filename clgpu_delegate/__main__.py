"""``python -m clgpu_delegate`` is the command ``clgpu``."""

from clgpu_delegate.cli import main

if __name__ == "__main__":
    main()
