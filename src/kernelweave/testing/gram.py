"""What every Gram engine promises: the same numbers as explicit sums of dense matrices."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from .._typing import FloatArray
from ..gram import Gram
from ._contract import Contract, draws, expect

contract = Contract()

#: samples and kernels: one of each, fewer and more kernels than are added at once, more rows than one block
SIZES = ((1, 1), (2, 3), (7, 8), (30, 9), (33, 17), (230, 10))


class GramCase(NamedTuple):
    """How engines are built from matrices and scales, and to how many digits they compute."""

    build: Callable[..., Gram]
    rtol: float = 1e-10


class Built(NamedTuple):
    """An engine, the matrices it stands for, and weights, one of them zero."""

    gram: Gram
    Ks: FloatArray
    weights: FloatArray


def check_gram(build: Callable[..., Gram], rtol: float = 1e-10) -> None:
    """Check a Gram engine: every method agrees with the matrices that the engine was built from.

    `combine`, `dot`, `quad`, `inner`, `rows`, `diag` and `subset` are compared with explicit sums, for few
    and many samples and kernels, supports of any size, matrices in other layouts, in single precision and
    in files; and `n_passes` counts what is read.

    Parameters
    ----------
    build : callable
        ``build(matrices)`` and ``build(matrices, scales)`` give an engine of the matrices scales[m] *
        matrices[m]; pass the class itself where its constructor takes these arguments.
    rtol : float, default=1e-10
        Relative precision to which the engine computes.

    Raises
    ------
    AssertionError
        Names the property that does not hold, and the engine.

    Examples
    --------
    >>> from kernelweave.gram import DenseGram
    >>> from kernelweave.testing import check_gram
    >>> check_gram(DenseGram)
    >>> class Rounded(DenseGram):
    ...     def quad(self, alpha, kernels=None):
    ...         return super().quad(alpha, kernels).round(3)
    >>> check_gram(Rounded)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    AssertionError: Rounded breaks the contract, quad of any support: ...
    """
    contract.check(_Name(getattr(build, "__name__", repr(build))), GramCase(build, rtol))


class _Name(str):
    def __repr__(self) -> str:
        return str(self)


def _matrices(n: int, M: int) -> FloatArray:
    """Positive semidefinite matrices, symmetric to the last bit, with entries that single precision holds."""
    roots = draws().normal(size=(M, n, n + 1))
    Ks = roots @ roots.transpose(0, 2, 1) / n
    return np.asarray((0.5 * (Ks + Ks.transpose(0, 2, 1))).astype(np.float32).astype(np.float64))


def _engines(case: GramCase) -> Iterator[Built]:
    for n, M in SIZES:
        rng = draws()
        raw, scales, weights = _matrices(n, M), rng.uniform(0.1, 3.0, size=M), rng.gamma(1.0, size=M)
        weights[1:2] = 0.0
        yield Built(case.build(list(raw), scales), scales[:, None, None] * raw, weights)


def _total(Ks: FloatArray, weights: FloatArray) -> FloatArray:
    return np.asarray(np.einsum("m,mij->ij", weights, Ks))


def _squares(Ks: FloatArray, alpha: FloatArray) -> FloatArray:
    columns = alpha.reshape(len(alpha), -1)
    return np.asarray(np.einsum("ic,mij,jc->m", columns, Ks, columns, optimize=True))


def _dense(K: Any) -> FloatArray:
    """A matrix as an array, whatever the engine makes of it."""
    return K if isinstance(K, np.ndarray) else np.asarray(K @ np.eye(len(K)))


def _close(case: GramCase, found: Any, expected: Any) -> None:
    size = max(1.0, float(np.abs(expected).max(initial=0.0)))
    assert_allclose(found, expected, rtol=case.rtol, atol=case.rtol * size)


@contract.promise
def sizes(case: GramCase) -> None:
    """n_samples and n_kernels are those of the matrices; nothing has been read yet, and `name` is set."""
    for gram, Ks, _ in _engines(case):
        found = (gram.n_kernels, gram.n_samples)
        expect(found == Ks.shape[:2], f"(n_kernels, n_samples) = {found} for {Ks.shape[:2]}")
        expect(gram.n_passes == 0, f"n_passes is {gram.n_passes}")
        expect(bool(gram.name))


@contract.promise
def combine_is_the_weighted_sum(case: GramCase) -> None:
    """combine(d) = sum_m d_m K_m, symmetric, and a new matrix every time."""
    for gram, Ks, weights in _engines(case):
        K = gram.combine(weights)
        _close(case, _dense(K), _total(Ks, weights))
        expect(K is not gram.combine(weights), "the same array twice")
        if isinstance(K, np.ndarray):
            assert_array_equal(K, K.T)
        assert_array_equal(_dense(gram.combine(0.0 * weights)), np.zeros(Ks.shape[1:]))


@contract.promise
def square_is_the_sum_on_some_samples(case: GramCase) -> None:
    """square(samples, d) = (sum_m d_m K_m)[samples, samples], in their order."""
    for gram, Ks, weights in _engines(case):
        for samples in (np.arange(gram.n_samples), np.arange(gram.n_samples)[::-2], np.empty(0, dtype=int)):
            found = _dense(gram.square(samples, weights))
            _close(case, found, _total(Ks, weights)[np.ix_(samples, samples)])


@contract.promise
def dot_is_the_product(case: GramCase) -> None:
    """dot(d, alpha, rows) = (sum_m d_m K_m alpha)[rows], for one or several columns and any rows."""
    rng = draws()
    for gram, Ks, weights in _engines(case):
        n = gram.n_samples
        for shape in ((), (1,), (3,)):
            alpha = rng.normal(size=(n, *shape))
            expected = _total(Ks, weights) @ alpha
            _close(case, gram.dot(weights, alpha), expected)
            for rows in (np.array([0]), np.empty(0, dtype=int), rng.integers(n, size=5), np.arange(n)[::-1]):
                found = gram.dot(weights, alpha, rows)
                expect(found.shape == (len(rows), *shape), f"shape {found.shape}")
                _close(case, found, expected[rows])


@contract.promise
def products_of_each_kernel(case: GramCase) -> None:
    """products(alpha, kernels, rows)[k] = (K_m alpha)[rows], m = kernels[k], of any support."""
    rng = draws()
    for gram, Ks, _ in _engines(case):
        every, rows = np.arange(gram.n_kernels), rng.integers(gram.n_samples, size=5)
        for share in (0.0, 0.1, 1.0):
            alpha = rng.normal(size=gram.n_samples) * (rng.uniform(size=gram.n_samples) < share)
            _close(case, gram.products(alpha), Ks @ alpha)
            _close(case, gram.products(alpha, None, rows), (Ks @ alpha)[:, rows])
            for kernels in (every, every[::2], every[:0]):
                _close(case, gram.products(alpha, kernels), Ks[kernels] @ alpha)
                _close(case, gram.products(alpha, kernels, rows), (Ks[kernels] @ alpha)[:, rows])


@contract.promise
def quad_of_any_support(case: GramCase) -> None:
    """quad(alpha)_m = alpha' K_m alpha, however many entries of alpha are zero."""
    rng = draws()
    for gram, Ks, _ in _engines(case):
        for share in (0.0, 0.02, 0.1, 0.3, 0.7, 1.0):
            alpha = rng.normal(size=gram.n_samples) * (rng.uniform(size=gram.n_samples) < share)
            expect(gram.quad(alpha).shape == (gram.n_kernels,), f"shape {gram.quad(alpha).shape}")
            for shaped in (alpha, alpha[:, None]):
                _close(case, gram.quad(shaped), _squares(Ks, alpha))


@contract.promise
def quad_sums_over_columns_and_takes_some_kernels(case: GramCase) -> None:
    """quad(alpha, kernels)_m = sum_c alpha_c' K_m alpha_c, for the kernels asked for."""
    rng = draws()
    for gram, Ks, _ in _engines(case):
        alpha = rng.normal(size=(gram.n_samples, 3))
        expected = _squares(Ks, alpha)
        _close(case, gram.quad(alpha), expected)
        _close(case, gram.quad(np.asfortranarray(alpha)), expected)
        _close(case, sum(gram.quad(column) for column in alpha.T), expected)
        some = rng.permutation(gram.n_kernels)[:2]
        _close(case, gram.quad(alpha, some), expected[some])


@contract.promise
def products_with_quad(case: GramCase) -> None:
    """quad_and_products(alpha) is quad(alpha), and K_m alpha where alpha is not zero, or None."""
    rng = draws()
    for gram, Ks, _ in _engines(case):
        for columns in (1, 2):
            for share in (0.0, 0.1, 0.5, 1.0):
                shape = (gram.n_samples, columns)
                alpha = rng.normal(size=shape) * (rng.uniform(size=shape) < share)
                squares, products = gram.quad_and_products(alpha)
                _close(case, squares, _squares(Ks, alpha))
                if products is not None:
                    support = np.flatnonzero(alpha)
                    _close(case, products[:, support], (Ks @ alpha[:, 0])[:, support])


@contract.promise
def inner_is_the_trace(case: GramCase) -> None:
    """inner(A)_m = tr(A K_m) for a symmetric A."""
    for gram, Ks, _ in _engines(case):
        A = draws().normal(size=Ks.shape[1:])
        A = A + A.T
        _close(case, gram.inner(A), np.einsum("ij,mji->m", A, Ks))


@contract.promise
def rows_and_diagonals(case: GramCase) -> None:
    """rows(i, d) and diag(d) are parts of sum_m d_m K_m; diagonals() bounds those of every kernel."""
    rng = draws()
    for gram, Ks, weights in _engines(case):
        K, indices = _total(Ks, weights), rng.integers(gram.n_samples, size=4)
        _close(case, gram.rows(indices, weights), K[indices])
        _close(case, gram.diag(weights), K.diagonal())
        assert_array_equal(gram.diag(0.0 * weights), np.zeros(gram.n_samples))
        expect(gram.rows(np.empty(0, dtype=int), weights).shape == (0, gram.n_samples))
        expect(gram.diagonals() >= Ks.diagonal(axis1=1, axis2=2) * (1.0 - 1e-6) - 1e-12)


@contract.promise
def subset_of_samples_and_kernels(case: GramCase) -> None:
    """subset(samples, kernels) is the engine of these parts of the matrices."""
    rng = draws()
    for gram, Ks, weights in _engines(case):
        samples, kernels = rng.permutation(gram.n_samples)[:20], rng.permutation(gram.n_kernels)[:5]
        parts: list[tuple[Gram, FloatArray, FloatArray]] = [
            (gram.subset(), Ks, weights),
            (gram.subset(samples), Ks[:, samples][:, :, samples], weights),
            (gram.subset(kernels=kernels), Ks[kernels], weights[kernels]),
            (gram.subset(samples, kernels), Ks[kernels][:, samples][:, :, samples], weights[kernels]),
        ]
        for part, expected, d in parts:
            expect((part.n_kernels, part.n_samples) == expected.shape[:2], "another size")
            _close(case, _dense(part.combine(d)), _total(expected, d))
            alpha = rng.normal(size=part.n_samples)
            _close(case, part.quad(alpha), _squares(expected, alpha))


@contract.promise
def several_models_at_once(case: GramCase) -> None:
    """The methods called `..._each` agree with their single forms."""
    rng = draws()
    for gram, Ks, weights in _engines(case):
        n, some = gram.n_samples, rng.permutation(gram.n_kernels)[:2]
        many = np.array([weights, 0.0 * weights, 2.0 * weights[::-1]])
        for K, own in zip(gram.combine_each(many), many, strict=True):
            _close(case, _dense(K), _total(Ks, own))
        part = rng.permutation(n)[: 1 + n // 2]
        for K, own in zip(gram.square_each(part, many), many, strict=True):
            _close(case, _dense(K), _total(Ks, own)[np.ix_(part, part)])
        chosen = [part, np.empty(0, dtype=int), rng.permutation(n)[:3]]
        for found, own, samples in zip(gram.rows_each(chosen, many), many, chosen, strict=True):
            _close(case, found, _total(Ks, own)[samples])
        rows = [np.arange(n)[::-2], rng.integers(n, size=5), None]
        for share in (0.0, 0.1, 0.4, 1.0):
            alpha = rng.normal(size=(n, 3)) * (rng.uniform(size=(n, 3)) < share)
            _close(case, gram.quad_each(alpha), np.array([_squares(Ks, own) for own in alpha.T]))
            _close(case, gram.quad_each(alpha, some), np.array([_squares(Ks[some], own) for own in alpha.T]))
            dots, products = gram.dot_each(many, alpha, rows), gram.products_each(alpha, some, rows)
            whole = gram.products_each(alpha, None, [None] * 3)
            for k, part in enumerate(np.arange(n) if part is None else part for part in rows):
                _close(case, dots[k], (_total(Ks, many[k]) @ alpha[:, k])[part])
                _close(case, products[k], (Ks[some] @ alpha[:, k])[:, part])
                _close(case, whole[k], Ks @ alpha[:, k])


@contract.promise
def other_layouts(case: GramCase) -> None:
    """Matrices stored by columns, strided, in single precision or mapped from a file are summed in double."""
    raw = _matrices(40, 9)
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "raw.npy", raw)
        layouts: list[list[Any]] = [
            [np.asfortranarray(K) for K in raw],
            list(np.repeat(np.repeat(raw, 2, axis=1), 2, axis=2)[:, ::2, ::2]),
            list(raw.astype(np.float32)),
            list(np.load(Path(folder) / "raw.npy", mmap_mode="r")),
        ]
        for stored in layouts:
            _expect_same(case, case.build(stored), raw)


def _expect_same(case: GramCase, gram: Gram, Ks: FloatArray) -> None:
    rng = draws()
    weights, part = rng.gamma(1.0, size=len(Ks)), np.array([5, 2, 9])
    alpha: Any = rng.normal(size=Ks.shape[1])
    K, two = _total(Ks, weights), np.column_stack([alpha, -alpha])
    _close(case, _dense(gram.combine(weights)), K)
    _close(case, gram.dot(weights, alpha), K @ alpha)
    _close(case, gram.quad(alpha), _squares(Ks, alpha))
    _close(case, gram.quad(two), 2.0 * _squares(Ks, alpha))
    squares, products = gram.quad_and_products(alpha[:, None])
    _close(case, squares, _squares(Ks, alpha))
    if products is not None:
        _close(case, products, Ks @ alpha)
    _close(case, gram.rows(part, weights), K[part])
    _close(case, gram.diag(weights), K.diagonal())
    _close(case, _dense(gram.subset(part).combine(weights)), K[np.ix_(part, part)])


@contract.promise
def quad_equals_dot(case: GramCase) -> None:
    """quad(alpha)_m = alpha' dot(unit_m, alpha), on any number of samples and any support."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 40))
        root = rng.normal(size=(2, n, 3)).astype(np.float32).astype(np.float64)
        alpha = rng.normal(size=n) * (rng.uniform(size=n) >= rng.uniform(-0.2, 1.2))
        gram = case.build(list((root @ root.transpose(0, 2, 1)).astype(np.float32)))
        dots = np.array([alpha @ gram.dot(unit, alpha) for unit in np.eye(2)])
        _close(case, gram.quad(alpha), dots)


@contract.promise
def passes_count_what_is_read(case: GramCase) -> None:
    """n_passes grows by the share of all entries that a call reads, and by no more than 1.

    What is known from the last call with the same alpha need not be read again.
    """
    gram = case.build(list(_matrices(50, 4)))
    alpha, one, every = np.ones(50), np.array([1.0, 0, 0, 0]), np.ones(4)
    few = np.where(np.arange(50) < 3, 1.0, 0.0)

    def cost(read: Callable[..., Any], *args: Any) -> float:
        before = gram.n_passes
        read(*args)
        return gram.n_passes - before

    expect(0 < cost(gram.combine, every) <= 1, "combine")
    assert_allclose(cost(gram.combine, one), cost(gram.combine, every) / 4, rtol=1e-6)
    expect(0 < cost(gram.dot, every, alpha) <= 1, "dot")
    expect(0 < cost(gram.dot, every, alpha, np.arange(10)) <= 0.5, "dot of some rows")
    assert_allclose(cost(gram.dot, one, alpha), cost(gram.dot, every, alpha) / 4, rtol=1e-6)
    expect(0 < cost(gram.quad, few) < cost(gram.quad, 2.0 * alpha) <= 1, "quad")
    expect(0 < cost(gram.rows, np.arange(2), every) <= 0.2, "rows")
    expect(cost(gram.quad, np.zeros(50)) == 0, "quad of nothing")
    expect(0 <= cost(gram.subset, np.arange(25)) <= 1, "subset")  # nothing where it is computed on demand
    expect(gram.subset(np.arange(25)).n_passes == 0, "a part does not start counting at 0")


@contract.promise
def rounding_is_declared(case: GramCase) -> None:
    """An engine that rounds can give its kernels in double precision; for others in_double() is None."""
    for raw in (_matrices(9, 3), _matrices(9, 3).astype(np.float32)):
        gram, alpha = case.build(list(raw)), draws().normal(size=9)
        fine = gram.in_double()
        expect(gram.rounds == (fine is not None), f"rounds={gram.rounds}, in_double() is {fine}")
        if fine is not None:
            assert_allclose(fine.quad(alpha), _squares(np.asarray(raw, dtype=float), alpha), rtol=1e-12)
