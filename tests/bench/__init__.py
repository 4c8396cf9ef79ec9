"""The measurements: what they compute from times, and that they run."""
