"""Tests on whole networks."""
