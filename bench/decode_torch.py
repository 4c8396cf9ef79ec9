"""The decoders of `bench.networks.decoder` in PyTorch, with random weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.networks.decoder import Decoder
from bench.peers_torch import captured

#: PyTorch's ways: calls one after the other, the same as a CUDA graph, and its compiler with one.
KINDS = ("PyTorch eager", "PyTorch CUDA graph", "PyTorch compile")

_EPSILON = 1e-5
_THETA = 10000.0


class TorchDecoder:
    """A decoder with static caches; each step gives its token to the host.

    Parameters
    ----------
    torch
        The module.
    decoder
        Sizes.
    prompt, cache
        Tokens that are read at once, and positions of the caches.
    precision
        ``"fp16"``, else float32; ``"tf32"`` lets products use TF32.
    kind
        One of `KINDS`.
    device
        Of PyTorch; CUDA graphs need ``"cuda"``.
    """

    def __init__(
        self, torch: Any, decoder: Decoder, prompt: int, cache: int, *, precision: str, kind: str,
        device: str = "cuda",
    ) -> None:  # fmt: skip
        self._torch, self._size, self._kind, self._device = torch, decoder, kind, device
        self._dtype = torch.float16 if precision == "fp16" else torch.float32
        self._tf32 = precision == "tf32"
        self._weights = {
            name: self._draw(weights.shape, weights.deviation)
            for name, weights in decoder.weights("float16").items()
        }
        shape = (decoder.key_heads, cache, decoder.depth)
        self._caches = [
            [torch.zeros(shape, dtype=self._dtype, device=device) for _ in range(decoder.layers)]
            for _ in range(2)
        ]
        self._places = torch.arange(cache, device=device)
        self._prompt = torch.arange(prompt, device=device) % decoder.vocabulary
        self._token = torch.zeros(1, dtype=torch.int64, device=device)
        self._position = torch.zeros(1, dtype=torch.int64, device=device)
        self._first = self._position + prompt
        with torch.inference_mode():
            self._read_prompt, self._run = self._made()

    def reset(self) -> None:
        """Begin at the first position; what the caches hold later makes no difference."""
        with self._torch.inference_mode():
            self._position.copy_(self._first)
            self._token.zero_()

    def read(self) -> int:
        """Read the prompt and a token."""
        with self._torch.inference_mode():
            self._allow()
            self._read_prompt()
            self._run()
            return int(self._token)

    def step(self) -> int:
        """Read the last token."""
        with self._torch.inference_mode():
            self._allow()
            self._run()
            return int(self._token)

    def _allow(self) -> None:
        self._torch.backends.cuda.matmul.allow_tf32 = self._tf32

    def _made(self) -> tuple[Callable[[], object], Callable[[], object]]:
        read, step = self._read_all, self._step
        if "compile" in self._kind:
            read, step = (self._torch.compile(each, fullgraph=True) for each in (read, step))
        if self._kind == KINDS[0] or self._device != "cuda":
            return read, step
        return captured(self._torch, read), captured(self._torch, step)

    def _draw(self, shape: tuple[int, ...], deviation: float) -> Any:
        values = self._torch.randn(shape, device=self._device, dtype=self._dtype)
        return values.mul_(deviation) if deviation else values.mul_(0.1).add_(1)

    def _read_all(self) -> None:
        positions = self._places[: len(self._prompt)]
        self._layers(self._weights["embedding"][self._prompt], positions, None)

    def _step(self) -> None:
        seen = (self._places <= self._position).view(1, 1, 1, -1)
        x = self._layers(self._weights["embedding"][self._token], self._position, seen)
        logits = self._linear(self._normalize(x, "norm"), "head")
        self._token.copy_(logits.argmax(-1))
        self._position.add_(1)

    def _layers(self, x: Any, positions: Any, seen: Any) -> Any:
        size, attend = self._size, self._torch.nn.functional.scaled_dot_product_attention
        turns = self._turns(positions)
        for i in range(size.layers):
            y = self._normalize(x, f"attention_norm_{i}")
            q, k, v = (
                self._linear(y, f"{name}_{i}").view(len(y), -1, size.depth).transpose(0, 1)
                for name in ("query", "key", "value")
            )
            q, k = self._rotate(q, turns), self._rotate(k, turns)
            for kept, new in zip(self._caches, (k, v)):
                kept[i].index_copy_(1, positions, new)
            if seen is not None:
                k, v = (kept[i] for kept in self._caches)
            mixed = attend(
                q[None], k[None], v[None], attn_mask=seen, is_causal=seen is None, enable_gqa=True
            )
            x = x + self._linear(mixed[0].transpose(0, 1).reshape(len(y), -1), f"mix_{i}")
            y = self._normalize(x, f"hidden_norm_{i}")
            gate = self._torch.nn.functional.silu(self._linear(y, f"gate_{i}"))
            x = x + self._linear(gate * self._linear(y, f"up_{i}"), f"down_{i}")
        return x

    def _linear(self, x: Any, name: str) -> Any:
        return self._torch.nn.functional.linear(x, self._weights[name])

    def _normalize(self, x: Any, name: str) -> Any:
        functional = self._torch.nn.functional
        return functional.rms_norm(x, (x.shape[-1],), self._weights[name], _EPSILON)

    def _turns(self, positions: Any) -> tuple[Any, Any]:
        half = self._size.depth // 2
        rates = self._torch.arange(half, device=self._device) * (-1 / half)
        angles = positions[:, None] * _THETA**rates
        return angles.cos().to(self._dtype), angles.sin().to(self._dtype)

    def _rotate(self, x: Any, turns: tuple[Any, Any]) -> Any:
        a, b = x.chunk(2, -1)
        cosine, sine = turns
        return self._torch.cat((a * cosine - b * sine, b * cosine + a * sine), -1)
