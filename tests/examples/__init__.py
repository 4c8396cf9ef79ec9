"""The examples run and print what they promise."""
