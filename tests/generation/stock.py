"""The same loop with the stock runtime, whose caches pass through the host."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.runtimes import make_interpreter

TINY_PROMPT = [3, 1, 4, 1, 5, 9, 2]


class Stock:
    """A decoder of `bench.networks.decoder` in the runtime's own kernels."""

    def __init__(self, model: bytes, runtime: str = "auto") -> None:
        self._runner = make_interpreter(runtime, model, ()).get_signature_runner("decode")
        self._caches = {
            name: np.zeros(detail["shape"], detail["dtype"])
            for name, detail in self._runner.get_input_details().items()
            if name.startswith("kv_cache")
        }
        self._position = 0

    def logits(self, token: int) -> np.ndarray:
        """Read a token; return what follows."""
        outputs = self._runner(
            tokens=np.array([[token]], np.int32),
            input_pos=np.array([self._position], np.int32),
            **self._caches,
        )
        self._position += 1
        logits = outputs.pop("logits")
        self._caches.update(outputs)
        return logits[0, 0]

    def greedy(self, prompt: Sequence[int], count: int) -> list[int]:
        """The likeliest tokens after a prompt; the last of them is not read."""
        for token in prompt:
            logits = self.logits(token)
        tokens = [int(np.argmax(logits))]
        while len(tokens) < count:
            tokens.append(int(np.argmax(self.logits(tokens[-1]))))
        return tokens
