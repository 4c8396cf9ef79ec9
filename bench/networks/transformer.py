"""A small transformer encoder that classifies a text (Vaswani et al. 2017, pre-norm)."""

from __future__ import annotations

import numpy as np

from bench.networks.layers import Net

VOCABULARY = 1000


def transformer(
    net: Net,
    batch: int = 1,
    *,
    tokens: int = 64,
    width: int = 128,
    heads: int = 4,
    blocks: int = 2,
) -> None:
    """Describe the network: int32 token ids ``(batch, tokens)`` to probabilities ``(batch, 10)``.

    Parameters
    ----------
    tokens
        Length of the text.
    width
        Channels per token; a multiple of ``heads``.
    heads
        Of each attention.
    blocks
        Pairs of attention and feed-forward layers.
    """
    x = net.embed(net.input("ids", (batch, tokens), np.int32), VOCABULARY, width)
    x = net.add_weights(x, (1, tokens, width))
    for _ in range(blocks):
        x = net.add(x, _attention(net, net.normalize(x, (2,)), heads))
        y = net.dense(net.normalize(x, (2,)), 4 * width, activation="GELU")
        x = net.add(x, net.dense(y, width))
    x = net.global_pool(net.normalize(x, (2,)))
    net.output(net.softmax(net.dense(x, 10, gain=6.0)))


def _attention(net: Net, x: int, heads: int) -> int:
    n, tokens, width = net.shape(x)
    depth = width // heads

    def split(y: int) -> int:
        return net.transpose(net.reshape(y, (n, tokens, heads, depth)), (0, 2, 1, 3))

    query, key, value = (split(net.dense(x, width)) for _ in range(3))
    scores = net.scale(net.matmul(query, key, adj_y=True), depth**-0.5)
    mixed = net.matmul(net.softmax(scores), value)
    return net.dense(net.reshape(net.transpose(mixed, (0, 2, 1, 3)), (n, tokens, width)), width)
