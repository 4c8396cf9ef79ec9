"""The ARM64 build, run under emulation."""
