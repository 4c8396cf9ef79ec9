"""``python -m tests.generation.exported FOLDER FORM ...``: a decoder that litert-torch exports.

A process of its own: it imports PyTorch. The decoder has SmolLM's layers, with random weights.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

CACHE = 64
PREFILL = (8, 16)


def _without_tensorflow() -> None:
    """Import the layers, which need TensorFlow only for the tables of a file."""
    if importlib.util.find_spec("tensorflow") is not None:
        return
    for name in ("litert_torch", "torch._dynamo"):  # they ask whether TensorFlow is there
        importlib.import_module(name)
    names = ("tensorflow", "tensorflow.lite", "tensorflow.lite.python")
    for name in names:
        sys.modules[name] = types.ModuleType(name)
    schema = importlib.import_module("ai_edge_litert.schema_py_generated")
    vars(sys.modules[names[-1]])["schema_py_generated"] = schema
    importlib.import_module("litert_torch.generative.layers.lora")
    for name in names:
        del sys.modules[name]


def make_model() -> Any:
    """Describe a decoder with random weights, and head and embedding of their own."""
    torch = importlib.import_module("torch")
    smollm = importlib.import_module("litert_torch.generative.examples.smollm.smollm")
    config = smollm.get_fake_model_config()
    config.max_seq_len = CACHE
    config.embedding_dim = 128
    config.lm_head_share_weight_with_embedding = False
    config.block_config(0).ff_config.intermediate_size = 256
    attention = config.block_config(0).attn_config
    attention.num_heads, attention.head_dim, attention.num_query_groups = 8, 16, 2
    torch.manual_seed(0)
    model = smollm.SmolLM(config, mask_cache_size=CACHE).eval()
    for name, weights in model.named_parameters():
        if weights.dim() == 1:
            torch.nn.init.uniform_(weights, 0.8, 1.2)
        else:
            torch.nn.init.normal_(weights, std=1 if "embedding" in name else 2 / 128**0.5)
    return model


def main(folder: str, *forms: str) -> None:
    """Export the decoder in forms of weights that litert-torch names."""
    _without_tensorflow()
    converter = importlib.import_module("litert_torch.generative.utilities.converter")
    settings = importlib.import_module("litert_torch.generative.utilities.export_config")
    model = make_model()
    for form in forms:
        path = converter.convert_to_tflite(
            model, folder, "tiny", prefill_seq_len=list(PREFILL), kv_cache_max_len=CACHE,
            quantize=form, config=model.config, export_config=settings.ExportConfig(),
        )  # fmt: skip
        Path(path).rename(Path(folder) / f"{form}.tflite")


if __name__ == "__main__":
    main(*sys.argv[1:])
