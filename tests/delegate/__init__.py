"""Tests of the core through a runtime: claims, partitions, constants, failing devices."""
