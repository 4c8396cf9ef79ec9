"""``python -m bench figures``: the tables, sentences and charts of README.md and docs, from files.

The files lie beside this one, ``<device>/<what>.json``; `bench.record` describes them.

| module | |
| --- | --- |
| `source` | a file, its rows, and the line that says where they come from |
| `marks` | the places in pages that are rewritten |
| `tables` | a function for each such place |
| `charts` | drawings, which know the digests of their files |
| `command` | writes or compares |
"""
