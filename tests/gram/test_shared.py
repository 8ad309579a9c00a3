"""Kernels that share distances or inner products equal the same kernels on their own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from kernelweave.gram import Dictionary, FeatureSource, _workers
from kernelweave.gram.blocks import Blocks
from kernelweave.gram.shared import MAX_POWER, Distances, Shared, pairs_of, power_chains
from kernelweave.gram.sharing import share
from kernelweave.kernels import (
    RBF,
    Euclidean,
    Kernel,
    Laplacian,
    Linear,
    Manhattan,
    Matern,
    Polynomial,
    SquaredEuclidean,
)

EXACT = {"rtol": 1e-10, "atol": 1e-12}
GRIDS = {
    "one": [0.3],
    "doubling": [0.1 * 2.0**k for k in range(8)],
    "decades": [1e-3, 1e-2, 1e-1, 1.0, 10.0],
    "unrelated": [1.2**-k for k in range(11)],
    "repeated": [0.5, 0.5, 0.1, 0.5],
    "far apart": [1e-8, 1e4],
}


@pytest.mark.parametrize(("dtype", "accuracy"), [(np.float64, 1e-14), (np.float32, 1e-6)])
def test_exponential_of_every_size(dtype, accuracy):
    from kernelweave.gram._shared_loops import exponential_values

    D = np.concatenate([[0.0], np.logspace(-12, np.log10(85.0), 5000)]).astype(dtype)[None]
    out = np.empty_like(D)
    exponential_values(D, np.array([-1.0, 0.0, 0.0], dtype), out)
    np.testing.assert_allclose(out, np.exp(-D.astype(np.float64)), rtol=accuracy)
    assert out[0, 0] == 1.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_exponential_of_what_underflows_is_next_to_zero(dtype):
    from kernelweave.gram._shared_loops import exponential_values

    D = np.array([[700.0, 1e3, 1e10, 1e30]], dtype=dtype)
    out = np.empty_like(D)
    exponential_values(D, np.array([-1.0, 0.0, 0.0], dtype), out)
    assert np.all((out >= 0) & (out < 2e-38))


def kernel_list():
    kernels = [RBF(0.3), Linear(), Polynomial(3, 0.5, 0.7), RBF(0.6), RBF(0.2, columns=[0, 2])]
    kernels += [Polynomial(2, columns=[1]), Laplacian(0.4), RBF("scale"), Linear(columns=[0, 2])]
    # functions of a base are made of functions of it, and of constants
    kernels += [2.0 * RBF(0.1) + Matern(1.5, nu=np.inf), 3.0 * Laplacian(0.1) * (Laplacian(1.0) + 1.0)]
    kernels += [Matern(0.5, nu=nu) for nu in (0.5, 1.5, 2.5)]
    return [*kernels, RBF(0.1) + Linear()]


def test_kernels_of_the_same_base_are_together(rng):
    X = rng.normal(size=(20, 3))
    parts, members = share([kernel.fit(X) for kernel in kernel_list()], X)
    groups = [(0, 3, 7, 9), (1, 2), (4,), (5,), (6, 10), (8,), (11, 12, 13), (14,)]
    assert sorted(map(tuple, members)) == groups
    assert [type(part.pairs) for part in parts].count(Distances) == 2


@pytest.mark.wide
@pytest.mark.parametrize("count", [3, 6])  # few rows are compared feature by feature
@pytest.mark.parametrize("container", ["array", "float32", "sparse", "fortran"])
def test_tiles_equal_the_kernels(rng, container, count):
    X = rng.normal(size=(90, 3)) + 1.0
    X = {
        "array": lambda: X,
        "float32": lambda: X.astype(np.float32),
        "sparse": lambda: sparse.csr_matrix(np.where(X > 1.0, X, 0.0)),
        "fortran": lambda: np.asfortranarray(X),
    }[container]()
    kernels = [kernel.fit(X) for kernel in kernel_list()]
    if container == "float32":
        expected, near = [k(X.astype(np.float64)) for k in kernels], {"rtol": 1e-5, "atol": 1e-6}
    else:
        expected, near = [k(X) for k in kernels], EXACT
    blocks, columns = Blocks.of_kernels(kernels, X), slice(2, 85)
    rows = np.array([3, 80, 3, 60, 1, 89])[:count]
    for m, K in blocks.each(rows, columns):
        np.testing.assert_allclose(K, expected[m][rows, columns], **near)
    np.testing.assert_allclose(blocks.diags, [K.diagonal() for K in expected], **near)
    factors = rng.normal(size=len(kernels))
    total = np.einsum("m,mij->ij", factors, expected)
    np.testing.assert_allclose(blocks.sum(rows, columns, factors), total[rows, columns], **near)
    W = rng.normal(size=(count, 83))
    traces = [np.vdot(W, K[rows, columns]) for K in expected]
    np.testing.assert_allclose(blocks.inner(rows, columns, W), traces, **near)
    products = [W[:, 0] @ K[rows, columns] for K in expected]
    np.testing.assert_allclose(blocks.multiplied(rows, columns, W[:, 0]), products, **near)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize(("dtype", "accuracy"), [(np.float64, 1e-12), (np.float32, 2e-6)])
def test_any_grid_of_widths(rng, grid, dtype, accuracy):
    gammas, X = np.array(GRIDS[grid]), rng.normal(size=(70, 4)).astype(dtype)
    shared = Shared(pairs_of(RBF.base, X), [RBF(gamma).fit(X) for gamma in gammas])
    D = shared.base(slice(0, 70), slice(0, 70))
    np.testing.assert_array_equal(D.diagonal(), 0.0)
    # the values that the rounded distances and widths stand for
    Ks = np.exp(-gammas.astype(dtype).astype(np.float64)[:, None, None] * D.astype(np.float64))
    factors, W = rng.uniform(0.1, 1.0, size=len(gammas)), rng.uniform(size=(70, 70))
    factors[1:2] = 0.0
    out = np.zeros((70, 70))
    shared.add(D, factors, out, lower=False)
    np.testing.assert_allclose(out, np.einsum("m,mij->ij", factors, Ks), rtol=accuracy, atol=accuracy)
    np.testing.assert_allclose(shared.inner(D, W, lower=False), np.einsum("ij,mij->m", W, Ks), rtol=accuracy)
    below = np.zeros((70, 70))
    shared.add(D, factors, below, lower=True)
    np.testing.assert_array_equal(np.tril(below), np.tril(out))
    np.testing.assert_allclose(
        shared.inner(D, np.tril(W), lower=True), np.einsum("ij,mij->m", np.tril(W), Ks), rtol=accuracy
    )


def test_chains_of_powers_are_those_of_the_kernels_taken(rng):
    """1, 2, 4 are powers of one another; of 3, 5, 7 every exponential is computed."""
    X = rng.normal(size=(9, 2))
    shared = Shared(pairs_of(RBF.base, X), [RBF(gamma).fit(X) for gamma in (1.0, 2.0, 4.0, 3.0, 5.0, 7.0)])
    D, first, rest = shared.base(slice(0, 9), slice(0, 9)), np.zeros((9, 9)), np.zeros((9, 9))
    shared.add(D, np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0]), first, lower=False)
    shared.take(None, np.array([3, 4, 5])).add(D, np.ones(3), rest, lower=False)
    np.testing.assert_allclose(first, sum(np.exp(-gamma * D) for gamma in (1.0, 2.0, 4.0)), **EXACT)
    np.testing.assert_allclose(rest, sum(np.exp(-gamma * D) for gamma in (3.0, 5.0, 7.0)), **EXACT)


@given(
    gammas=st.lists(st.sampled_from([2.0**k for k in range(-6, 7)] + [0.3, 0.9, 10.0, 70.0]), min_size=1),
    most=st.sampled_from([1, 8, 1000]),
)
def test_a_chain_multiplies_up_to_every_width(gammas, most):
    gammas = np.array(gammas)
    order, powers = power_chains(gammas, most)
    assert sorted(order) == list(range(len(gammas)))
    assert powers[0] == 0
    first = last = 0.0
    for gamma, power in zip(gammas[order], powers, strict=True):
        first, last = (first, last * power) if power else (gamma, gamma)
        assert last == pytest.approx(gamma, rel=1e-13)
        assert gamma <= most * first * (1 + 1e-13)


def test_doubled_widths_take_one_exponential():
    gammas = np.array(GRIDS["doubling"])
    assert np.count_nonzero(power_chains(gammas, MAX_POWER["d"])[1] == 0) == 1
    assert np.count_nonzero(power_chains(gammas, MAX_POWER["f"])[1] == 0) == 2


def test_one_loop_thread_inside_a_thread():
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(_workers.loop_threads).result() == 1


def test_loops_follow_the_threads_of_blas():
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        assert _workers.loop_threads() == 1


class Cauchy(Kernel):
    """A kernel of a user's own, which says what it is a function of."""

    base = SquaredEuclidean()

    def __init__(self, gamma=1.0, columns=None):
        self.gamma = gamma
        self.columns = columns

    def of_base(self, B, xp):
        return 1.0 / (1.0 + self.gamma * B)


class OwnRBF(RBF):
    """Computes its values itself, whatever the kernel that it comes from shares."""

    def _compute(self, X, Z):
        return 0.5 * super()._compute(X, Z)


class SteepRBF(RBF):
    """Another function of the distances: the form of the kernel that it comes from says nothing of it."""

    def of_base(self, B, xp):
        return xp.exp(-3.0 * self.gamma_ * B)


def test_kernels_of_a_user_share_what_they_say(rng):
    X = rng.normal(size=(30, 3))
    kernels = [
        kernel.fit(X) for kernel in (RBF(0.2), Cauchy(), OwnRBF(0.2), SteepRBF(0.2), 2.0 * Cauchy(3.0))
    ]
    _, members = share(kernels, X)
    assert sorted(map(tuple, members)) == [(0, 1, 3, 4), (2,)]
    blocks, every = Blocks.of_kernels(kernels, X), slice(0, 30)
    for m, K in blocks.each(every, every):
        np.testing.assert_allclose(K, kernels[m](X), **EXACT)
    np.testing.assert_allclose(kernels[2](X), 0.5 * kernels[0](X), **EXACT)
    np.testing.assert_allclose(kernels[3](X), kernels[0](X) ** 3, **EXACT)
    np.testing.assert_allclose(blocks.diags, [kernel.diag(X) for kernel in kernels], **EXACT)


def test_one_distance_for_twenty_widths(rng, monkeypatch):
    """Of every kind of kernel, and of kernels that differ in kind."""
    asked = []
    for base in (Manhattan, Euclidean):
        between = base.between
        count = lambda self, *args, between=between: asked.append(1) or between(self, *args)  # noqa: E731
        monkeypatch.setattr(base, "between", count)
    X = rng.normal(size=(40, 3))
    kernels = [kind(factor=f) for f in np.geomspace(0.1, 10.0, 10) for kind in (Laplacian, Matern)]
    kernels += [1.0 + Laplacian() * Laplacian(2.0)]
    source = FeatureSource([(str(m), kernel) for m, kernel in enumerate(kernels)], X)
    assert source.n_bases == 2
    Dictionary(source, "variance", gram="dense")
    assert len(asked) == 2
