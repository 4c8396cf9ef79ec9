"""The kernel files."""
