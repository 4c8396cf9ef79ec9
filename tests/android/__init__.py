"""Android: all sources compile and link for it; CMake refuses what cannot be built."""
