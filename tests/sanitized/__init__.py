"""Tests on an extension with sanitizers: ``python -m tests.sanitized address|thread [ARGS]``."""
