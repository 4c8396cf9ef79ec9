"""Another extension, package or kernels for all processes that tests start."""
