"""Models travel through skops with the documented list of trusted types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import cosine_similarity

import kernelweave as kw
from kernelweave.kernels import RBF, FunctionKernel, Linear
from kernelweave.persistence import skops_types

from ..targets import targets_for
from .cases import KERNELS, LEARNED, MODELS, N_TRAIN, example, kernel_case, labels, numbers, of_kind, targets
from .conftest import answers, fitted

sio = pytest.importorskip("skops.io", reason="needs skops")

QUICK: dict[str, dict[str, Any]] = {
    "MKLClassifierCV": {"Cs": [1.0], "cv": 2},
    "MKLRegressorCV": {"Cs": [1.0], "cv": 2},
    "GroupOMPClassifierCV": {"alphas": [0.1], "cv": 2, "n_kernels": 2},
    "GroupOMPRegressorCV": {"alphas": [0.1], "cv": 2, "n_kernels": 2},
    "GMKLClassifier": {"max_iter": 2, "tol": 1.0},
    "GMKLRegressor": {"max_iter": 2, "tol": 1.0},
}


def travels(model: Any, X: Any) -> None:
    loaded = sio.loads(sio.dumps(model), trusted=skops_types())
    before, after = answers(model, X), answers(loaded, X)
    assert before.keys() == after.keys() != set()
    assert all(np.array_equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("name", MODELS)
def test_every_estimator(name: str) -> None:
    model, X = getattr(kw, name)(**QUICK.get(name, {})), numbers(N_TRAIN, 0)
    travels(fitted(model, X, *targets_for(model, targets(), labels())), X)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("key", KERNELS)
def test_every_kernel(key: str) -> None:
    case = kernel_case(key)
    travels(fitted(kw.MKLClassifier(case.spec, max_iter=2), case.X, labels() == "ash"), case.X_new)


@pytest.mark.parametrize("key", LEARNED)
def test_every_learned_kernel(key: str) -> None:
    model = kw.GMKLRegressor(example(key), regularizer="l2", max_iter=1, tol=1.0)
    travels(fitted(model, numbers(N_TRAIN, 0), targets()), numbers(5, 1))


@pytest.mark.parametrize("key", of_kind("regularizer"))
def test_every_regularizer(key: str) -> None:
    model = kw.MKLRegressor([RBF(), Linear(), RBF(factor=0.1)], regularizer=example(key), max_iter=2)
    travels(fitted(model, numbers(N_TRAIN, 0), targets()), numbers(5, 1))


def test_other_data_and_losses() -> None:
    X = numbers(N_TRAIN, 0)
    travels(fitted(kw.MKLClassifier(loss="logistic", multiclass="ovo"), X, labels()), X)
    y = X[:, 1] > X[:, 2]
    travels(fitted(kw.MKLClassifier("precomputed"), np.dstack([X @ X.T]), y), np.dstack([X @ X.T]))
    travels(fitted(kw.MKLClassifier([Linear()]), sparse.csr_array(X), y), sparse.csr_array(X))
    frame = pd.DataFrame(X, columns=list("abcd"))
    travels(fitted(kw.MKLClassifier([RBF(columns=["a", "b"])]), frame, y), frame)


def test_a_function_of_the_users_is_not_trusted() -> None:
    X = numbers(N_TRAIN, 0)
    data = sio.dumps(fitted(kw.MKLClassifier([FunctionKernel(cosine_similarity)]), X, X[:, 1] > X[:, 2]))
    with pytest.raises(sio.exceptions.UntrustedTypesFoundException, match="FunctionKernel"):
        sio.loads(data, trusted=skops_types())
