"""The campaign counts the effects of faults, malicious files, random graphs and load.

``python -m tests.campaign`` runs it and prints the table of docs/reliability.md.
"""
