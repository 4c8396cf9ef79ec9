"""LiteRT's CompiledModel on this delegate."""
