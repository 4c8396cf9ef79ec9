"""Compressed storage of sparse constants, as DENSIFY reads it."""

from __future__ import annotations

import dataclasses

import flatbuffers
import numpy as np
import tflite

_INDEX_VECTORS = (  # narrowest first: the converter picks the first that holds the largest value
    (np.uint8, tflite.SparseIndexVector.Uint8Vector, tflite.Uint8Vector),
    (np.uint16, tflite.SparseIndexVector.Uint16Vector, tflite.Uint16Vector),
    (np.int32, tflite.SparseIndexVector.Int32Vector, tflite.Int32Vector),
)


@dataclasses.dataclass(frozen=True)
class Sparsity:
    """Which blocks along the last axis are stored: compressed sparse rows.

    Attributes
    ----------
    dense_sizes
        Extent of every axis but the last, which are stored densely.
    segments
        ``(rows + 1,)``; row r owns the stored blocks ``segments[r]:segments[r + 1]``.
    indices
        Position of every stored block along the last axis, in blocks.
    block
        Elements per block; 1 is the block-less form.
    """

    dense_sizes: tuple[int, ...]
    segments: np.ndarray
    indices: np.ndarray
    block: int

    def write(self, builder: flatbuffers.Builder) -> int:
        """Write the ``SparsityParameters`` table and return its offset."""
        last = len(self.dense_sizes)
        dims = [_dense(builder, size) for size in self.dense_sizes]
        dims.append(_compressed(builder, self.segments, self.indices))
        if self.block > 1:
            dims.append(_dense(builder, self.block))
        metadata = _offsets(builder, dims)
        order = builder.CreateNumpyVector(np.arange(len(dims), dtype=np.int32))
        block_map = builder.CreateNumpyVector(np.array([last], np.int32)) if self.block > 1 else 0
        tflite.SparsityParametersStart(builder)
        tflite.SparsityParametersAddTraversalOrder(builder, order)
        if block_map:
            tflite.SparsityParametersAddBlockMap(builder, block_map)
        tflite.SparsityParametersAddDimMetadata(builder, metadata)
        return tflite.SparsityParametersEnd(builder)


def compress(dense: np.ndarray, block: int = 1) -> tuple[np.ndarray, Sparsity]:
    """Keep only the blocks of the last axis that hold a nonzero.

    Parameters
    ----------
    dense
        Array of rank 1 or more.
    block
        Elements per block; must divide the last axis.

    Returns
    -------
    values, sparsity
        The stored elements, flat, row after row, and where they belong.
    """
    if dense.ndim == 0 or dense.shape[-1] % block:
        raise ValueError(f"blocks of {block} do not tile the last axis of shape {dense.shape}")
    blocks = dense.reshape(-1, dense.shape[-1] // block, block)
    kept = (blocks != 0).any(axis=-1)
    segments = np.concatenate([[0], np.cumsum(kept.sum(axis=1))])
    return blocks[kept].reshape(-1), Sparsity(dense.shape[:-1], segments, kept.nonzero()[1], block)


def _dense(builder: flatbuffers.Builder, size: int) -> int:
    tflite.DimensionMetadataStart(builder)
    tflite.DimensionMetadataAddFormat(builder, tflite.DimensionType.DENSE)
    tflite.DimensionMetadataAddDenseSize(builder, size)
    return tflite.DimensionMetadataEnd(builder)


def _compressed(builder: flatbuffers.Builder, segments: np.ndarray, indices: np.ndarray) -> int:
    segments_type, segments_at = _index_vector(builder, segments)
    indices_type, indices_at = _index_vector(builder, indices)
    tflite.DimensionMetadataStart(builder)
    tflite.DimensionMetadataAddFormat(builder, tflite.DimensionType.SPARSE_CSR)
    tflite.DimensionMetadataAddArraySegmentsType(builder, segments_type)
    tflite.DimensionMetadataAddArraySegments(builder, segments_at)
    tflite.DimensionMetadataAddArrayIndicesType(builder, indices_type)
    tflite.DimensionMetadataAddArrayIndices(builder, indices_at)
    return tflite.DimensionMetadataEnd(builder)


def _index_vector(builder: flatbuffers.Builder, values: np.ndarray) -> tuple[int, int]:
    largest = values.max(initial=0)
    dtype, kind, table = next(v for v in _INDEX_VECTORS if largest <= np.iinfo(v[0]).max)
    at = builder.CreateNumpyVector(values.astype(dtype))
    name = table.__name__
    getattr(tflite, f"{name}Start")(builder)
    getattr(tflite, f"{name}AddValues")(builder, at)
    return kind, getattr(tflite, f"{name}End")(builder)


def _offsets(builder: flatbuffers.Builder, offsets: list[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    return builder.EndVector()
