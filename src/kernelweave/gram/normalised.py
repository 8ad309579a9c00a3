"""Normalisations fitted on kernels that are computed a tile at a time."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np

from .._typing import FloatArray
from ..kernels import Normalization, resolve_normalization
from .blocks import Blocks, tiles

#: bytes of products of kernels with a vector at a time
PRODUCT_BYTES = 1 << 26


def normalised(
    blocks: Blocks, normalize: Any, sample_weight: FloatArray | None
) -> tuple[Blocks, list[Normalization]]:
    """Normalisations fitted on raw kernels in one pass over them, and the kernels normalised.

    Every rule is fitted twice on a matrix of which only the diagonal is known: first to hear which
    products K v it asks for, then with all of them computed together.
    """
    rule = resolve_normalization(normalize)
    _check_rule(rule)
    rules = [copy(rule) for _ in range(blocks.n_kernels)]
    step = max(1, PRODUCT_BYTES // (8 * blocks.n_samples))
    for some in tiles(blocks.n_kernels, step):
        everything = step >= blocks.n_kernels
        part = blocks if everything else blocks.take(kernels=np.arange(some.start, some.stop))
        _fit_rules(rules[some], part, sample_weight)
    return with_rules(blocks, rules), rules


def with_rules(blocks: Blocks, rules: Sequence[Normalization]) -> Blocks:
    """Raw kernels normalised, but for their scale, by rules that were fitted on them."""
    return Blocks(blocks.parts, blocks.members, *_constants(rules, blocks.n_samples))


def _fit_rules(rules: list[Normalization], blocks: Blocks, sample_weight: FloatArray | None) -> None:
    """Fit every rule on its kernel."""
    matrices: list[Any] = [_Streamed(*known) for known in zip(blocks.diags, blocks.dtypes, strict=True)]
    for rule, matrix in zip(rules, matrices, strict=True):
        rule.fit(matrix, sample_weight)
    if matrices[0].vector is not None:
        products = blocks.products(np.array([matrix.vector for matrix in matrices]))
        for rule, matrix, product in zip(rules, matrices, products, strict=True):
            matrix.product = product
            rule.fit(matrix, sample_weight)


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
    rules: Sequence[Normalization], n: int
) -> tuple[FloatArray | None, FloatArray | None, FloatArray | None]:
    """r, u and c of `Blocks`, each None where no rule has it."""
    found = [rule.entries() for rule in rules]
    roots, means = _stacked([r for r, _, _ in found], 1.0, n), _stacked([u for _, u, _ in found], 0.0, n)
    return roots, means, None if means is None else np.array([c for _, _, c in found])


def _stacked(rows: Sequence[FloatArray | None], default: float, n: int) -> FloatArray | None:
    """The rows as one array, None standing for a row of `default`; None when all are."""
    if all(row is None or (row == default).all() for row in rows):
        return None
    return np.array([np.full(n, default) if row is None else row for row in rows], dtype=np.float64)
