"""The measurements run, and compute the right values from times."""
