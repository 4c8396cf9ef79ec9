"""Android: that all sources compile and link for it, and what CMake refuses."""
