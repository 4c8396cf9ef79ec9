"""Snapshots of plans: which engines compute the networks on devices that are known by facts."""
