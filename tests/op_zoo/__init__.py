"""TensorFlow Lite's own tests of operations, through the delegate; see ``__main__``."""
