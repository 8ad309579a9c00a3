"""What cannot be stored is refused when it is saved, with the reason and what to do instead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave.kernels import RBF, FunctionKernel, Linear
from kernelweave.persistence import ModelFileError
from kernelweave.persistence.classes import FUNCTIONS, own_classes
from kernelweave.persistence.codec import Writer
from kernelweave.persistence.files import FORMS
from kernelweave.regularizers import FromBlockNorm, FromPrice
from kernelweave.solvers.kernel_gradient import FunctionPenalty, Projection

from .cases import N_TRAIN, labels, numbers, targets
from .conftest import fitted

X = numbers(N_TRAIN, 0)


class OwnKernel(RBF):
    pass


class OwnModel(kw.MKLClassifier):
    pass


def dot(A: Any, B: Any) -> Any:
    return A @ B.T


@pytest.mark.parametrize(
    ("kernels", "where"),
    [
        ([FunctionKernel(dot)], "FunctionKernel"),
        ([Linear(), FunctionKernel(lambda A, B: A @ B.T)], "FunctionKernel"),
        ([RBF() + FunctionKernel(cosine_similarity)], "FunctionKernel"),
        ({"mine": dot}, "kernel 'mine'"),
        ([OwnKernel()], "OwnKernel"),
    ],
)
def test_kernels_with_code_of_their_own(kernels: Any, where: str, tmp_path: Path) -> None:
    model = fitted(kw.MKLClassifier(kernels), X, labels())
    with pytest.raises(ModelFileError, match=where) as caught:
        kw.save_model(model, tmp_path / "model.kw")
    message = str(caught.value)
    assert "no code" in message
    assert "Precomputed" in message
    assert "joblib" in message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("regularizer", FunctionPenalty(lambda d: d.sum(), lambda d: np.ones_like(d))),
        ("constraint", Projection(lambda d: np.clip(d, 0, 1))),
        ("constraint", lambda d: np.clip(d, 0, 1)),
    ],
)
def test_functions_in_generalized_models(parameter: str, value: Any, tmp_path: Path) -> None:
    model = kw.GMKLRegressor(solver="spectral", max_iter=5, **{parameter: value})
    with pytest.raises(ModelFileError, match=f"^{parameter} cannot go into a model file"):
        kw.save_model(fitted(model, X, targets()), tmp_path / "model.kw")


@pytest.mark.parametrize(
    ("model", "parameter"),
    [
        (kw.MKLRegressor(regularizer=FromPrice(lambda d: float((d**2).sum()))), "regularizer"),
        (kw.MKLRegressor(regularizer=FromBlockNorm(lambda x: float(np.sqrt(x).sum()))), "regularizer"),
        (kw.EmpiricalBayesRegressor(hyperprior=lambda d: float(d.sum())), "hyperprior"),
    ],
)
def test_functions_in_regularizers(model: Any, parameter: str, tmp_path: Path) -> None:
    model.set_params(kernels=[RBF(), Linear()], max_iter=3)
    with pytest.raises(ModelFileError, match=f"^{parameter} cannot go into a model file"):
        kw.save_model(fitted(model, X, targets()), tmp_path / "model.kw")


def test_classes_made_of_functions_are_in_no_file() -> None:
    assert not set(FUNCTIONS) & set(own_classes().values())


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", 1j, np.array([1j]), np.array([object()]), int])
def test_values_of_other_types(value: Any) -> None:
    with pytest.raises(ModelFileError, match="cannot go into a model file"):
        Writer(FORMS).value([value])


def test_other_objects_than_models(tmp_path: Path) -> None:
    pipeline = make_pipeline(StandardScaler(), OwnModel()).fit(X, labels())
    for thing in (pipeline, RBF(), {"a": 1}, fitted(OwnModel(), X, labels())):
        with pytest.raises(ModelFileError, match="and pipelines that end in one, not a"):
            kw.save_model(thing, tmp_path / "model.kw")


@pytest.mark.parametrize("model", [kw.MKLClassifier(), kw.GMKLRegressor(), kw.MKLRegressorCV()])
def test_a_model_that_was_not_fitted(model: Any, tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        kw.save_model(model, tmp_path / "model.kw")


def test_kernels_nested_beyond_reason(tmp_path: Path) -> None:
    kernel: Any = RBF()
    for _ in range(40):
        kernel = (kernel + Linear()) * RBF()
    model = fitted(kw.MKLClassifier([kernel]), X, labels())
    with pytest.raises(ModelFileError, match="nested deeper"):
        kw.save_model(model, tmp_path / "model.kw")
