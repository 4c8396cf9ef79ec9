"""Tests of the passes, one file each."""
