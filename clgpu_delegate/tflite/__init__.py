"""TensorFlow Lite: its files as objects, read and written, and its runtimes, started and run."""
