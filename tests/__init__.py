"""Tests of clgpu_delegate, and the tools they are written with."""
