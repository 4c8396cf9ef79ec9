"""Three small networks, trained here, in four number formats; see README.md."""
