"""The same models, inputs and machine for all libraries that are installed: `bench peers`.

`work` says what is run, `peer` is the interface of a library, with a class for each in `stock`,
`ours`, `openvino`, `opencv`, `onnx` and `pytorch`; `registry` lists them. `worker` is the process
of a peer, `maker` the one that makes models and reference results, `session` starts and times them
in turns, `report`, `charts` and `page` show the rows, and `command` is the command.
"""
