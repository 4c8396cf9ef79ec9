"""Wheels: their content, and that they work after installation."""
