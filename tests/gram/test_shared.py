"""Kernels that share distances or inner products equal the same kernels on their own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from kernelweave.gram import _workers
from kernelweave.gram.blocks import Blocks
from kernelweave.gram.chains import power_chains
from kernelweave.gram.shared import MAX_POWER, SharedDistances
from kernelweave.gram.sharing import share
from kernelweave.kernels import RBF, Laplacian, Linear, Polynomial

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
    from kernelweave.gram._shared_loops import gaussian_values

    D = np.concatenate([[0.0], np.logspace(-12, np.log10(85.0), 5000)]).astype(dtype)[None]
    out = np.empty_like(D)
    gaussian_values(D, dtype(1.0), out)
    np.testing.assert_allclose(out, np.exp(-D.astype(np.float64)), rtol=accuracy)
    assert out[0, 0] == 1.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_exponential_of_what_underflows_is_next_to_zero(dtype):
    from kernelweave.gram._shared_loops import gaussian_values

    D = np.array([[700.0, 1e3, 1e10, 1e30]], dtype=dtype)
    out = np.empty_like(D)
    gaussian_values(D, dtype(1.0), out)
    assert np.all((out >= 0) & (out < 2e-38))


def kernel_list():
    kernels = [RBF(0.3), Linear(), Polynomial(3, 0.5, 0.7), RBF(0.6), RBF(0.2, columns=[0, 2])]
    return [*kernels, Polynomial(2, columns=[1]), Laplacian(0.4), RBF("scale"), Linear(columns=[0, 2])]


def test_kernels_of_the_same_base_are_together(rng):
    X = rng.normal(size=(20, 3))
    parts, members = share([kernel.fit(X) for kernel in kernel_list()], X)
    assert sorted(map(tuple, members)) == [(0, 3, 7), (1, 2), (4,), (5,), (6,), (8,)]
    assert [type(part).__name__ for part in parts].count("SharedDistances") == 2


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


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize(("dtype", "accuracy"), [(np.float64, 1e-12), (np.float32, 2e-6)])
def test_any_grid_of_widths(rng, grid, dtype, accuracy):
    gammas, X = np.array(GRIDS[grid]), rng.normal(size=(70, 4)).astype(dtype)
    shared = SharedDistances(X, gammas)
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
