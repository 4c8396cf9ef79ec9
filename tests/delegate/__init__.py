"""Tests of the core as a runtime sees it: claims, partitions, constants, failing devices."""
