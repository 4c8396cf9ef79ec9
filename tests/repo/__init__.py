"""Rules on the shape of the repository."""
