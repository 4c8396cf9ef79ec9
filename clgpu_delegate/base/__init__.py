"""What every room uses: processes, files, texts, and OpenCL runtimes that pip installed."""
