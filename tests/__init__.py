"""Tests of clgpu_delegate, and their helpers."""
