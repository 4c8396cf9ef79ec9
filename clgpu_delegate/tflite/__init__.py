"""TensorFlow Lite: reading and writing its files, and running its runtimes."""
