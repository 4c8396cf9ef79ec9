"""A delegate's report on a model, as objects: nodes, partitions, memory, verification."""
