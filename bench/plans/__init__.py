"""Snapshots of plans: which engines compute the networks on devices that profiles describe.

`profile` reads and writes the answers of a device and its driver, and `facts` records them on a
real device; `emulated` has the mobile devices of the tests. `paper` makes plans for profiles with
an OpenCL library that computes nothing, `text` formats them, and `snapshots` compares them with the
stored ones.
"""
