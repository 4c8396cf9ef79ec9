"""Applications, and three small networks that are trained here, in four number formats."""
