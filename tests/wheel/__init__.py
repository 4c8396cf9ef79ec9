"""Wheels: what is in them, and that they work where they are installed."""
