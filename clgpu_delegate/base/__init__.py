"""What all subpackages use: processes, files, texts, and OpenCL runtimes that pip installed."""
