"""M kernels on n samples, normalised, computed a tile at a time and kept nowhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from functools import partial
from typing import Any, Self

import numpy as np

from .._typing import FloatArray, IntArray
from ..kernels import Kernel, Normalization, resolve_normalization
from ._workers import map_tiles
from .shared import Given, Part, Shared, count, total
from .sharing import share
from .stack import KernelStack

#: samples in the rows and columns of a tile: large enough for matrix products, small enough for caches
TILE_ROWS, TILE_COLUMNS = 512, 1024

#: bytes in use while one tile is computed: products, distances, values and their sum
WORK_BYTES = 4 * TILE_ROWS * TILE_COLUMNS * 8


class Blocks:
    """Tiles of M kernels, normalised except for their scale.

        K'_m,ij = r_mi r_mj K_m,ij - u_mi - u_mj + c_m

    Parameters
    ----------
    parts : list of Shared
        The kernels; those with the same base are together.
    members : list of ndarray of int
        Which of the M kernels each part has.
    roots, means : ndarray of shape (M, n), optional
        r and u; 1 and 0 by default.
    grands : ndarray of shape (M,), optional
        c; 0 by default.

    Examples
    --------
    >>> blocks = Blocks.of_matrices([np.eye(2), np.ones((2, 2))])
    >>> blocks.sum(slice(0, 1), slice(0, 2), np.array([1.0, 2.0]))
    array([[3., 2.]])
    """

    def __init__(
        self,
        parts: list[Shared],
        members: list[IntArray],
        roots: FloatArray | None = None,
        means: FloatArray | None = None,
        grands: FloatArray | None = None,
    ) -> None:
        self.parts, self.members = parts, members
        self.n_samples, self.n_kernels = parts[0].n_samples, sum(len(group) for group in members)
        # Gaussian kernels are on the unit sphere as they are
        self.roots = None if roots is None or bool(np.all(roots == 1.0)) else roots
        self.means, self.grands = means, grands
        self._diags: FloatArray | None = None

    @classmethod
    def of_kernels(cls, kernels: Sequence[Kernel], X: Any) -> Self:
        """Fitted kernels on data, not normalised."""
        return cls(*share(kernels, X))

    @classmethod
    def of_matrices(cls, matrices: KernelStack | Sequence[FloatArray]) -> Self:
        """Matrices in memory, not normalised."""
        stack = matrices if isinstance(matrices, KernelStack) else KernelStack(list(matrices))
        M = len(stack.matrices)
        return cls([Shared(Given(stack, m), [None]) for m in range(M)], [np.array([m]) for m in range(M)])

    @property
    def dtypes(self) -> list[Any]:
        """Precision of every kernel's values."""
        found: list[Any] = [None] * self.n_kernels
        for part, members in zip(self.parts, self.members, strict=True):
            for m in members:
                found[m] = part.dtype
        return found

    @property
    def single(self) -> bool:
        """Whether some kernels have values in single precision."""
        return any(part.dtype == np.float32 for part in self.parts)

    def with_parts(self, parts: list[Shared]) -> Blocks:
        """The same kernels from other parts, such as parts that remember their base."""
        return Blocks(parts, self.members, self.roots, self.means, self.grands)

    # -- tiles --------------------------------------------------------------------------------

    def sum(self, rows: Part, columns: Part, factors: FloatArray, lower: bool = False) -> FloatArray:
        """sum_m factors[m] K'_m between two sets of samples.

        With `lower` the tile is on the diagonal and entries above it may be anything.
        """
        out = np.zeros((count(rows), count(columns)))
        for part, members in zip(self.parts, self.members, strict=True):
            own = factors[members]
            if not own.any():
                continue
            base = part.base(rows, columns)
            if self.roots is None:
                part.add(base, own, out, lower)
                continue
            for k in np.flatnonzero(own):
                out += own[k] * self._scaled(members[k], part.values(base, int(k)), rows, columns)
        if self.means is not None and self.grands is not None:
            shift = factors @ self.means
            out -= np.add.outer(shift[rows], shift[columns])
            out += factors @ self.grands
        return out

    def sum_each(self, rows: Part, columns: Part, factors: FloatArray, lower: bool = False) -> FloatArray:
        """`sum` for every row of factors, (k, M), from values computed once; shape (k, n_rows, n_columns)."""
        out = np.zeros((len(factors), count(rows), count(columns)))
        for part, members in zip(self.parts, self.members, strict=True):
            own = factors[:, members]
            if not own.any():
                continue
            base = part.base(rows, columns)
            if self.roots is None:
                part.add_each(base, own, out, lower)
                continue
            for k in np.flatnonzero(own.any(axis=0)):
                values = self._scaled(members[k], part.values(base, int(k)), rows, columns)
                for whole, factor in zip(out, own[:, k], strict=True):
                    whole += factor * values
        if self.means is not None and self.grands is not None:
            shifts = factors @ self.means
            out -= shifts[:, rows][:, :, None] + shifts[:, columns][:, None, :]
            out += (factors @ self.grands)[:, None, None]
        return out

    def inner(self, rows: Part, columns: Part, W: FloatArray, lower: bool = False) -> FloatArray:
        """sum_ij W_ij K'_m,ij for every m; with `lower`, W is 0 above the diagonal."""
        out = np.empty(self.n_kernels)
        for part, members in zip(self.parts, self.members, strict=True):
            base = part.base(rows, columns)
            if self.roots is None:
                out[members] = part.inner(base, W, lower)
                continue
            for k, m in enumerate(members):
                out[m] = total(W, self._scaled(m, part.values(base, k), rows, columns))
        if self.means is not None and self.grands is not None:
            out -= self.means[:, rows] @ W.sum(axis=1) + self.means[:, columns] @ W.sum(axis=0)
            out += self.grands * W.sum()
        return out

    def multiplied(self, rows: Part, columns: Part, vector: FloatArray) -> FloatArray:
        """sum_i vector_i K'_m,ij over the rows i, for every m and every column j; shape (M, n_columns)."""
        out = np.empty((self.n_kernels, count(columns)))
        for part, members in zip(self.parts, self.members, strict=True):
            roots = None if self.roots is None else self.roots[members]
            left = np.tile(vector, (len(members), 1)) if roots is None else roots[:, rows] * vector
            found = part.multiplied(part.base(rows, columns), left)
            out[members] = found if roots is None else roots[:, columns] * found
        if self.means is not None and self.grands is not None:
            total = float(vector.sum())
            out += (total * self.grands - self.means[:, rows] @ vector)[:, None]
            out -= total * self.means[:, columns]
        return out

    def each(self, rows: Part, columns: Part) -> Iterator[tuple[int, FloatArray]]:
        """(m, K'_m) between two sets of samples, one kernel after another."""
        for part, members in zip(self.parts, self.members, strict=True):
            base = part.base(rows, columns)
            for k, m in enumerate(members):
                values = self._scaled(m, part.values(base, k), rows, columns)
                if self.means is not None and self.grands is not None:
                    values = values - np.add.outer(self.means[m][rows], self.means[m][columns])
                    values += self.grands[m]
                yield int(m), values

    def prepare(self, rows: Part, evict: bool) -> None:
        """Tell every part that these rows are about to be read."""
        for part in self.parts:
            part.prepare(rows, evict)

    def _scaled(self, m: int, values: FloatArray, rows: Part, columns: Part) -> FloatArray:
        """r_mi r_mj K_m,ij."""
        if self.roots is None:
            return values
        return np.asarray(np.multiply.outer(self.roots[m][rows], self.roots[m][columns]) * values)

    # -- whole matrices -----------------------------------------------------------------------

    @property
    def diags(self) -> FloatArray:
        """K'_m,ii, shape (M, n)."""
        if self._diags is None:
            found = np.empty((self.n_kernels, self.n_samples))
            for part, members in zip(self.parts, self.members, strict=True):
                for k, m in enumerate(members):
                    found[m] = part.diag(k)
            if self.roots is not None:
                found *= self.roots**2
            if self.means is not None and self.grands is not None:
                found += self.grands[:, None] - 2.0 * self.means
            self._diags = found
        return self._diags

    def diagonal(self, factors: FloatArray) -> FloatArray:
        """sum_m factors[m] K'_m,ii, without the diagonals of all kernels."""
        if self.roots is not None:
            return np.asarray(factors @ self.diags)
        out = np.zeros(self.n_samples)
        for part, members in zip(self.parts, self.members, strict=True):
            out += part.diagonal(factors[members])
        if self.means is not None and self.grands is not None:
            out += factors @ self.grands - 2.0 * (factors @ self.means)
        return out

    def products(self, vectors: FloatArray) -> FloatArray:
        """K'_m v_m for every m, in one pass over the lower triangles; shapes (M, n)."""
        raw, out = self.roots is None and self.means is None, np.empty(vectors.shape)
        rest = np.ones(self.n_kernels, dtype=bool)
        for part, members in zip(self.parts, self.members, strict=True):
            if raw and part.batched:
                out[members], rest[members] = part.products(vectors[members]), False
        if rest.all():
            return self._tiled_products(vectors)
        if rest.any():
            out[rest] = self.take(kernels=np.flatnonzero(rest))._tiled_products(vectors[rest])
        return out

    def _tiled_products(self, vectors: FloatArray) -> FloatArray:
        out, pairs = np.zeros((self.n_kernels, self.n_samples)), list(lower_tiles(self.n_samples))
        for (rows, columns), (right, left) in zip(
            pairs, map_tiles(partial(self._both, vectors), pairs), strict=True
        ):
            out[:, rows] += right
            if rows != columns:
                out[:, columns] += left
        return out

    def _both(self, vectors: FloatArray, pair: tuple[slice, slice]) -> tuple[FloatArray, FloatArray]:
        """K'_m v_m and its counterpart across the diagonal, of one tile."""
        rows, columns = pair
        right = np.empty((self.n_kernels, count(rows)))
        left = np.empty((self.n_kernels, count(columns)))
        for m, K in self.each(rows, columns):
            np.einsum("ij,j->i", K, vectors[m, columns], out=right[m])
            np.einsum("ij,i->j", K, vectors[m, rows], out=left[m])
        return right, left

    def take(self, samples: IntArray | None = None, kernels: IntArray | None = None) -> Blocks:
        """The same kernels on some samples, or some of the kernels; constants stay the same."""
        chosen = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        parts: list[Shared] = []
        members: list[IntArray] = []
        for part, group in zip(self.parts, self.members, strict=True):
            own, inside = among(group, None if kernels is None else chosen, self.n_kernels)
            if len(inside):
                parts.append(part.take(samples, own))
                members.append(inside)
        every = slice(None) if samples is None else samples
        roots, means = (
            None if values is None else values[chosen][:, every] for values in (self.roots, self.means)
        )
        return Blocks(parts, members, roots, means, None if self.grands is None else self.grands[chosen])


def among(group: IntArray, chosen: IntArray | None, n_kernels: int) -> tuple[IntArray | None, IntArray]:
    """Which of a group are chosen (None: all), and where they stand among the chosen."""
    if chosen is None:
        return None, group
    where = np.full(n_kernels, -1)
    where[group] = np.arange(len(group))
    inside = np.flatnonzero(where[chosen] >= 0)
    return where[chosen[inside]], inside


def lower_tiles(n: int) -> Iterator[tuple[slice, slice]]:
    """Tiles that cover the lower triangle once: those on the diagonal are square, the others below it.

    Examples
    --------
    >>> [(rows.stop, columns.stop) for rows, columns in lower_tiles(600)]
    [(75, 75), (150, 75), (150, 150), ...
    """
    step = min(TILE_ROWS, max(64, n // 8))
    for start in range(0, n, step):
        rows = slice(start, min(start + step, n))
        for columns in tiles(start, TILE_COLUMNS):
            yield rows, columns
        yield rows, rows


def rectangle(n_rows: int, n_columns: int) -> list[tuple[slice, slice]]:
    """Tiles that cover all rows and columns once."""
    every = tiles(n_columns, TILE_COLUMNS)
    return [(rows, columns) for rows in tiles(n_rows, TILE_ROWS) for columns in every]


def tiles(n: int, step: int, first: int = 0) -> list[slice]:
    """Pieces of at most `step` of the samples from `first` to n.

    Examples
    --------
    >>> tiles(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + step, n)) for start in range(first, n, step)]


#: bytes of products of kernels with a vector at a time
PRODUCT_BYTES = 1 << 26


def normalised(
    blocks: Blocks, normalize: Any, sample_weight: FloatArray | None
) -> tuple[Blocks, list[Normalization]]:
    """Normalisations fitted on raw kernels in one pass over them, and the kernels normalised.

    Every rule is fitted twice on a matrix of which only the diagonal is known. The first time shows which
    products K v and which part of K it asks for. The second time it gets them, computed for all kernels
    together.
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
    """Raw kernels normalised, except for their scale, by rules that were fitted on them."""
    return Blocks(blocks.parts, blocks.members, *_constants(rules, blocks.n_samples))


def _fit_rules(rules: list[Normalization], blocks: Blocks, sample_weight: FloatArray | None) -> None:
    """Fit every rule on its kernel."""
    matrices: list[Any] = [_Streamed(*known) for known in zip(blocks.diags, blocks.dtypes, strict=True)]
    for rule, matrix in zip(rules, matrices, strict=True):
        rule.fit(matrix, sample_weight)
    vector, rows = matrices[0].vector, matrices[0].rows
    if vector is not None:
        products = blocks.products(np.array([matrix.vector for matrix in matrices]))
        for matrix, product in zip(matrices, products, strict=True):
            matrix.product = product
    if rows is not None:
        for m, part in blocks.each(rows, rows):
            matrices[m].part = part
    if vector is not None or rows is not None:
        for rule, matrix in zip(rules, matrices, strict=True):
            rule.fit(matrix, sample_weight)


class _Streamed:
    """Stands for a Gram matrix in the fit of a normalisation: its diagonal, one product and one part."""

    def __init__(self, diag: FloatArray, dtype: Any) -> None:
        self.diag, self.dtype, self.shape = diag, dtype, (len(diag), len(diag))
        self.vector: FloatArray | None = None
        self.product: FloatArray | None = None
        self.rows: IntArray | None = None
        self.part: FloatArray | None = None

    def diagonal(self) -> FloatArray:
        return self.diag

    def __matmul__(self, vector: FloatArray) -> FloatArray:
        if self.vector is not None and not np.array_equal(vector, self.vector):
            raise ValueError("normalize asks for products with two vectors: use gram='dense'.")
        self.vector = np.asarray(vector, dtype=np.float64)
        return np.zeros_like(self.diag) if self.product is None else self.product

    def __getitem__(self, key: tuple[IntArray, IntArray]) -> FloatArray:
        self.rows = key[0].ravel()
        return np.zeros((len(self.rows), len(self.rows))) if self.part is None else self.part


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
    """The rows as one array, where None stands for a row of `default`; None when every row is None."""
    if all(row is None or (row == default).all() for row in rows):
        return None
    return np.array([np.full(n, default) if row is None else row for row in rows], dtype=np.float64)
