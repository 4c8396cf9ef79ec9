"""The Python layer, in every runtime that is installed."""
