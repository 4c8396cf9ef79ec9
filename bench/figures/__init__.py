"""``python -m bench figures``: the tables, sentences and charts of README.md and docs, from files.

The files are in this folder, ``<device>/<what>.json``; `bench.record` describes them.

| module | |
| --- | --- |
| `source` | a file, its rows, and the line that names their origin |
| `marks` | the places in pages that are rewritten |
| `tables` | a function for each such place |
| `charts` | drawings, which contain the digests of their files |
| `command` | writes or compares |
"""
