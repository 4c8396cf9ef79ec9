"""All peers. Importing their modules imports none of their libraries."""

from __future__ import annotations

from collections.abc import Sequence

from bench.peers import onnx, opencv, openvino, ours, pytorch, stock
from bench.peers.peer import Peer

PEERS: tuple[Peer, ...] = (
    ours.Ours(),
    ours.OursCompiled(),
    ours.OursRunner(),
    stock.LiteRt(),
    stock.LiteRtPlain(),
    stock.TfLite(),
    stock.TfLitePlain(),
    stock.LiteRtGpu(),
    openvino.OpenVinoCpu(),
    openvino.OpenVinoGpu(),
    opencv.OpenCvCl(),
    opencv.OpenCvCpu(),
    onnx.OnnxRuntime(),
    onnx.Tinygrad(),
    pytorch.PyTorchEager(),
    pytorch.PyTorchGraph(),
    pytorch.PyTorchCompiled(),
)
"""The first one is what the others are compared with."""


def chosen(words: Sequence[str], peers: Sequence[Peer] = PEERS) -> list[Peer]:
    """The peers whose names contain one of the words, and always the first; all without words.

    Raises
    ------
    ValueError
        If no name contains a word.
    """
    for word in words:
        if not any(word.lower() in peer.name.lower() for peer in peers):
            names = ", ".join(peer.name for peer in peers)
            raise ValueError(f"no peer's name contains {word!r}; there are {names}")
    named = [p for p in peers[1:] if any(word.lower() in p.name.lower() for word in words)]
    return [peers[0], *(named if words else peers[1:])]
