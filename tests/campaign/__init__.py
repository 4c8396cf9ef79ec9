"""The campaign: what faults, hostile files, random graphs and load make of the delegate, counted.

``python -m tests.campaign`` runs it and prints the table of docs/reliability.md.
"""
