"""Normalisations fitted on kernels that are computed a tile at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import FloatArray
from ..kernels import Normalization, resolve_normalization
from .blocks import Blocks


def normalised(
    blocks: Blocks, normalize: Any, sample_weight: FloatArray | None
) -> tuple[Blocks, list[Normalization]]:
    """Normalisations fitted on raw kernels in one pass over them, and the kernels normalised.

    Every rule is fitted twice on a matrix of which only the diagonal is known: first to hear which
    products K v it asks for, then with all of them computed together.
    """
    rules = [resolve_normalization(normalize) for _ in range(blocks.n_kernels)]
    _check_rule(rules[0])
    matrices: list[Any] = [_Streamed(*known) for known in zip(blocks.diags, blocks.dtypes, strict=True)]
    for rule, matrix in zip(rules, matrices, strict=True):
        rule.fit(matrix, sample_weight)
    if matrices[0].vector is not None:
        products = blocks.products(np.array([matrix.vector for matrix in matrices]))
        for rule, matrix, product in zip(rules, matrices, products, strict=True):
            matrix.product = product
            rule.fit(matrix, sample_weight)
    return Blocks(blocks.parts, blocks.members, *_constants(rules, blocks.n_samples)), rules


class _Streamed:
    """Stands for a Gram matrix in the fit of a normalisation: its diagonal, and one product."""

    def __init__(self, diag: FloatArray, dtype: Any) -> None:
        self.diag, self.dtype, self.shape = diag, dtype, (len(diag), len(diag))
        self.vector: FloatArray | None = None
        self.product: FloatArray | None = None

    def diagonal(self) -> FloatArray:
        return self.diag

    def __matmul__(self, vector: FloatArray) -> FloatArray:
        if self.vector is not None and not np.array_equal(vector, self.vector):
            raise ValueError("normalize asks for products with two vectors: use gram='dense'.")
        self.vector = np.asarray(vector, dtype=np.float64)
        return np.zeros_like(self.diag) if self.product is None else self.product


def _check_rule(rule: Normalization) -> None:
    """Refuse a normalisation that changes entries and does not say how."""
    kind = type(rule)
    if kind.train is not Normalization.train and kind.entries is Normalization.entries:
        raise ValueError(
            f"normalize={rule!r} has no `entries` to compute blocks with: add them, or use gram='dense'."
        )


def _constants(
    rules: list[Normalization], n: int
) -> tuple[FloatArray | None, FloatArray | None, FloatArray | None]:
    """r, u and c of `Blocks`, each None where no rule has it."""
    found = [rule.entries() for rule in rules]
    roots = np.array([np.ones(n) if r is None else r for r, _, _ in found])
    means = np.array([np.zeros(n) if u is None else u for _, u, _ in found])
    grands = np.array([c for _, _, c in found])
    centred = any(u is not None for _, u, _ in found)
    return (roots, means, grands) if centred else (roots, None, None)
