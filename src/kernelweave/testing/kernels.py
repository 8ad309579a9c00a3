"""What every kernel promises."""

from __future__ import annotations

import copy
import pickle
from typing import Any, NamedTuple
from unittest import SkipTest

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone

from ..kernels import Kernel, Views, resolve_kernels
from ._contract import Contract, draws, expect, expect_clone

contract = Contract()

N_TRAIN, N_NEW = 12, 5


class KernelCase(NamedTuple):
    """A kernel, the rows it is fitted on, and new rows."""

    kernel: Kernel
    X: Any
    Z: Any


def check_kernel(kernel: Kernel, X: Any = None, Z: Any = None) -> None:
    """Check a kernel: a positive semidefinite function, whose blocks, diagonal and copies agree.

    Matrices are symmetric and positive semidefinite, on training and new rows together; parameters taken from
    the training rows stay as they are; a row of weight 2 counts as two rows; columns may be given by name or
    by position; input is left alone; clones and pickled copies give the same numbers.

    Parameters
    ----------
    kernel : Kernel
        With its parameters, not fitted.
    X, Z : ndarray of shape (n, n_features), optional
        Training and new rows that the kernel takes; by default positive numbers, strings over ACGT or sample
        numbers, as the kernel says in `accepts`.

    Raises
    ------
    AssertionError
        Names the property that does not hold, and the kernel.

    Examples
    --------
    >>> from kernelweave.kernels import RBF, FunctionKernel
    >>> from kernelweave.testing import check_kernel
    >>> check_kernel(RBF(gamma="median"))
    >>> check_kernel(FunctionKernel(lambda X, Z: X[:, :1] - Z[:, 0]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    AssertionError: FunctionKernel(...) breaks the contract, symmetric and positive semidefinite: ...
    """
    contract.check(kernel, kernel_case(kernel, X, Z))


def kernel_case(kernel: Kernel, X: Any = None, Z: Any = None) -> KernelCase:
    """The kernel with rows that it takes: those given, or rows drawn to suit `accepts`."""
    if X is not None:
        return KernelCase(kernel, X, X[: len(X) // 2] if Z is None else Z)
    rng, count = draws(), N_TRAIN + N_NEW
    rows: Any
    if kernel.accepts == "string":
        lengths = rng.integers(6, 15, size=count)
        rows = np.array(["".join(rng.choice(list("ACGT"), n)) for n in lengths], dtype=object)[:, None]
    elif kernel.accepts == "index":
        rows = np.arange(count)[:, None]
    else:
        rows = rng.gamma(2.0, size=(count, 4))  # not negative: every numeric kernel takes them
    return KernelCase(kernel, rows[:N_TRAIN], rows[N_TRAIN:])


def _fitted(case: KernelCase) -> Kernel:
    result: Kernel = clone(case.kernel).fit(case.X)
    return result


def _expect_positive_semidefinite(K: np.ndarray) -> None:
    least = float(np.linalg.eigvalsh(K).min())
    expect(least >= -1e-10 * np.abs(K).max(), f"the least eigenvalue is {least:.3g}")


@contract.promise
def symmetric_and_positive_semidefinite(case: KernelCase) -> None:
    """k(x, z) = k(z, x) and a'Ka >= 0, on training rows and with new ones."""
    K = case.kernel(case.X)
    expect(K.shape == (len(case.X), len(case.X)), f"shape {K.shape}")
    assert_allclose(K, K.T, rtol=1e-12)
    _expect_positive_semidefinite(K)
    _expect_positive_semidefinite(_fitted(case)(np.concatenate([case.X, case.Z])))


@contract.promise
def diag_is_the_gram_diagonal(case: KernelCase) -> None:
    """diag(X)_i = k(x_i, x_i), on training and on new rows."""
    fitted = _fitted(case)
    for rows in (case.X, case.Z):
        assert_allclose(fitted.diag(rows), np.diagonal(fitted(rows)), rtol=1e-12)


@contract.promise
def blocks_agree(case: KernelCase) -> None:
    """k(X, Z) = k(Z, X)', and the block of some rows is part of the matrix of all."""
    fitted = _fitted(case)
    assert_allclose(fitted(case.X, case.Z), fitted(case.Z, case.X).T, rtol=1e-10)
    assert_allclose(fitted(case.X[3:6], case.X), fitted(case.X)[3:6], rtol=1e-10)
    assert_allclose(fitted(case.X, case.X.copy()), fitted(case.X), rtol=1e-10)


@contract.promise
def fitted_parameters_do_not_change_on_new_rows(case: KernelCase) -> None:
    """k(X) is the same before and after the kernel has seen Z."""
    fitted = _fitted(case)
    before = fitted(case.X)
    fitted(case.Z)
    fitted.diag(case.Z)
    assert_array_equal(fitted(case.X), before)


@contract.promise
def an_unfitted_call_leaves_the_kernel_unfitted(case: KernelCase) -> None:
    """k(X) of a kernel that is not fitted sets no attribute."""
    before = {key for key in vars(case.kernel) if not key.startswith("_")}
    case.kernel(case.X)
    expect({key for key in vars(case.kernel) if not key.startswith("_")} == before)


@contract.promise
def clone_and_parameters(case: KernelCase) -> None:
    """A kernel built from get_params, and a clone, give the same matrix; repr and label are short."""
    kernel = case.kernel
    expect_clone(kernel)
    params = kernel.get_params(deep=False)
    rebuilt = type(kernel)(**params)
    expect(rebuilt.get_params(deep=False).keys() == params.keys())
    assert_array_equal(rebuilt(case.X), clone(kernel)(case.X))
    expect(len(repr(kernel)) < 200 and 0 < len(kernel.label) < 60, f"{kernel.label!r}")
    expect(kernel.accepts in {"numeric", "string", "index", "any", "mixed"}, f"accepts={kernel.accepts!r}")


@contract.promise
def pickles(case: KernelCase) -> None:
    """A pickled copy of a fitted kernel gives the same numbers."""
    fitted = _fitted(case)
    try:
        stored = pickle.dumps(fitted)
    except (pickle.PicklingError, AttributeError) as error:
        raise SkipTest(f"{fitted} holds what pickle does not store: {error}") from error
    assert_array_equal(pickle.loads(stored)(case.X, case.Z), fitted(case.X, case.Z))


@contract.promise
def input_is_not_modified(case: KernelCase) -> None:
    """X and Z are left as they were."""
    X, Z = copy.deepcopy(case.X), copy.deepcopy(case.Z)
    fitted = clone(case.kernel).fit(case.X, sample_weight=np.ones(len(X)))
    fitted(case.X)
    fitted(case.X, case.Z)
    fitted.diag(case.X)
    assert_array_equal(case.X, X)
    assert_array_equal(case.Z, Z)


@contract.promise
def named_columns_equal_positions(case: KernelCase) -> None:
    """A kernel on some columns, by name or position, equals the kernel of a table of these columns alone."""
    if case.kernel.columns is not None:
        raise SkipTest("the kernel has its columns already")
    chosen = list(range(case.X.shape[1]))
    padded = np.concatenate([np.full((len(case.X), 1), -7.0, dtype=object), case.X.astype(object)], axis=1)
    expected = case.kernel(case.X)
    assert_allclose(case.kernel.with_columns([j + 1 for j in chosen])(padded), expected, rtol=1e-12)
    try:
        import pandas as pd
    except ImportError as error:
        raise SkipTest("no pandas") from error
    frame = pd.DataFrame(padded, columns=["other", *(f"c{j}" for j in chosen)]).infer_objects()
    assert_allclose(case.kernel.with_columns([f"c{j}" for j in chosen])(frame), expected, rtol=1e-12)


@contract.promise
def a_view_is_a_table(case: KernelCase) -> None:
    """The kernel of a view depends on its table alone, whatever other tables there are."""
    views = Views({"other": np.zeros((len(case.X), 2)), "own": case.X})
    [(name, kernel)] = resolve_kernels({"own": case.kernel}, views)
    expect(name == "own" and views.view_of(kernel) == 1, f"the kernel is {name}, or of another view")
    own, new = _fitted(case), Views({"other": np.ones((len(case.Z), 2)), "own": case.Z})
    assert_allclose(kernel.fit(views)(new, views), own(case.Z, case.X), rtol=1e-12)
    assert_allclose(kernel.diag(new), own.diag(case.Z), rtol=1e-12)


@contract.promise
def lists_are_accepted(case: KernelCase) -> None:
    """Nested lists are tables too."""
    assert_allclose(case.kernel(case.X.tolist()), case.kernel(case.X), rtol=1e-12)


@contract.promise
def weights_equal_repeats(case: KernelCase) -> None:
    """A row of weight w is w equal rows; only scikit-learn's rule "scale" counts rows of any weight once."""
    weight, kernel = np.arange(len(case.X)) % 3, clone(case.kernel)
    scales = [
        key for key, value in kernel.get_params().items() if isinstance(value, str) and value == "scale"
    ]
    kernel.set_params(**dict.fromkeys(scales, "weighted"))
    weighted = clone(kernel).fit(case.X, sample_weight=weight)(case.X, case.Z)
    repeated = clone(kernel).fit(np.repeat(case.X, weight, axis=0))(case.X, case.Z)
    assert_allclose(weighted, repeated, rtol=1e-10)


@contract.promise
def sparse_equals_dense(case: KernelCase) -> None:
    """A sparse matrix gives the same numbers as the dense array, or is refused with advice to densify it."""
    if case.kernel.accepts != "numeric" or case.kernel.columns is not None:
        raise SkipTest(f"{case.kernel} is not a function of all columns of a table of numbers")
    X, Z = (draws().poisson(0.5, size=(n, 6)).astype(float) for n in (8, 5))
    dense, part = clone(case.kernel).fit(X), case.kernel.with_columns([4, 1])
    try:
        thin = clone(case.kernel).fit(sparse.csr_matrix(X))
        thin(sparse.csr_matrix(X))
    except ValueError as error:
        expect("densify" in str(error), f"the error does not say what to do: {error}")
        raise SkipTest(f"{case.kernel} takes no sparse matrices") from error
    for container in (sparse.csr_matrix, sparse.csc_array, sparse.coo_array):
        for B in (container(Z), Z):
            assert_allclose(thin(container(X), B), dense(X, Z), rtol=1e-7, atol=1e-12)
        assert_allclose(thin.diag(container(X)), dense.diag(X), rtol=1e-12)
        assert_allclose(part(container(X)), part(X), rtol=1e-7, atol=1e-7)
