"""Public functions that measure models or devices."""
