"""Snapshots of plans: which engines compute the networks, on devices that are known by facts.

`profile` reads and writes what a device and its driver answer, and `facts` records it on a real
one; `emulated` has the mobile devices of the tests. `paper` makes plans for profiles through an
OpenCL library that computes nothing, `text` writes them down, and `snapshots` compares them with
those that are kept.
"""
