"""Mixtures of experts: a gating network picks some of many experts for each sample.

Files with ``form="dense"`` compute every expert and multiply it by its gate, which is zero for
those that were not picked. With ``form="branches"`` each expert is a graph that an IF runs if a
gate of it is above zero. With ``form="gathered"`` the matrices of the experts that were picked are
gathered by index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bench.networks.layers import Net

FORMS = ("gathered", "dense", "branches")

# Adds an expert's layers to a network, for its input and its gate, and returns their product.
Expert = Callable[[Net, Sequence[int]], int]


def _check_form(form: str, allowed: Sequence[str]) -> None:
    if form not in allowed:
        raise ValueError(f"form is {form!r}; allowed: {', '.join(allowed)}")


def _sum_of_experts(
    net: Net, x: int, gates: Sequence[int], experts: Sequence[Expert], form: str
) -> int:
    total = -1
    for gate, expert in zip(gates, experts):
        if form == "dense":
            y = expert(net, [x, gate])
        else:
            y = net.only_if(net.any_positive(gate), [x, gate], expert)
        total = y if total < 0 else net.add(total, y)
    return total


def imagenet_moe(
    net: Net,
    batch: int = 1,
    *,
    experts: int = 16,
    chosen: int = 4,
    size: int = 227,
    width: int = 1,
    classes: int = 1000,
    form: str = "dense",
) -> None:
    """Describe a mixture for images: ``(batch, size, size, 3)`` to ``(batch, classes)``.

    The experts are AlexNets of a quarter of its width, up to their first dense layer, without
    groups. A small convolution decides on the gates.

    Parameters
    ----------
    net
        The network.
    batch
        Images per run.
    experts, chosen
        Experts, and how many of them each image has.
    size
        Of the images, at least 67.
    width
        Multiplies the layers of the experts by this quarter of their width in AlexNet.
    classes
        Results.
    form
        ``"dense"`` or ``"branches"``. Files of both have the same numbers for weights.
    """
    _check_form(form, FORMS[1:])
    image = net.input("image", (batch, size, size, 3))
    seen = net.global_pool(net.conv(image, 24 * width, 11, 4, padding="VALID"))
    gates = net.split(net.top_gates(net.dense(seen, experts, gain=4.0), chosen), experts)

    def expert(net: Net, operands: Sequence[int]) -> int:
        image, gate = operands
        x = net.conv(image, 24 * width, 11, 4, padding="VALID")
        x = net.max_pool(net.local_response_norm(x), 3, 2)
        x = net.conv(x, 64 * width, 5)
        x = net.max_pool(net.local_response_norm(x), 3, 2)
        x = net.conv(net.conv(x, 96 * width, 3), 96 * width, 3)
        x = net.flatten(net.max_pool(net.conv(x, 64 * width, 3), 3, 2))
        return net.gate(net.dense(x, 1024 * width, activation="RELU"), gate)

    total = _sum_of_experts(net, image, gates, [expert] * experts, form)
    net.output(net.softmax(net.dense(total, classes, gain=3.0)))


def decoder_moe(
    net: Net,
    batch: int = 1,
    *,
    experts: int = 64,
    chosen: int = 8,
    width: int = 2048,
    hidden: int = 1024,
    form: str = "gathered",
) -> None:
    """Describe the feed-forward part of a decoder: ``(batch, width)`` to the same shape.

    Each expert is ``down(silu(gate(x)) * up(x))``. Files of both forms have the same numbers for
    weights.

    Parameters
    ----------
    net
        The network.
    batch
        Tokens per run.
    experts, chosen
        Experts, and how many of them each token has.
    width, hidden
        Of a token, and within an expert.
    form
        One of `FORMS`.
    """
    _check_form(form, FORMS)
    x = net.input("tokens", (batch, width))
    scores = net.dense(x, experts, gain=4.0)
    matrices = [net.stack(experts, hidden, width, x) for _ in range(2)]
    matrices.append(net.stack(experts, width, hidden, x))
    if form != "gathered":

        def of(i: int) -> Expert:
            first, second, last = (np.ascontiguousarray(stack[i]) for stack in matrices)

            def expert(net: Net, operands: Sequence[int]) -> int:
                x, gate = operands
                inner = net.multiply(net.silu(net.product(x, first)), net.product(x, second))
                return net.gate(net.product(inner, last), gate)

            return expert

        gates = net.split(net.top_gates(scores, chosen), experts)
        net.output(_sum_of_experts(net, x, gates, [of(i) for i in range(experts)], form))
        return
    values, which = net.top(scores, chosen)
    first, second, last = (net.weights(stack) for stack in matrices)
    tokens = net.reshape(x, (batch, 1, 1, width))
    inner = net.multiply(
        net.silu(net.gathered_product(tokens, first, which)),
        net.gathered_product(tokens, second, which),
    )
    y = net.gathered_product(inner, last, which)
    y = net.gate(y, net.reshape(values, (batch, chosen, 1, 1)))
    net.output(net.reshape(net.sum(y, 1), (batch, width)))
