"""Benchmarks of clgpu_delegate: single ops, and whole networks."""
