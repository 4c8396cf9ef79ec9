"""What failing calls of OpenCL and of the memory allocator lead to, one after the other."""
