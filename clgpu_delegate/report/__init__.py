"""What a delegate tells about a model, as objects: nodes, partitions, memory, verification."""
