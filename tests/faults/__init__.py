"""The effects of failing calls of OpenCL and of the memory allocator, one call at a time."""
