"""Language models: the loop over signatures, and the caches that stay on the device."""
