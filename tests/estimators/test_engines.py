"""A fit does not depend on where its kernel matrices live."""

from __future__ import annotations

import numpy as np
import pytest

import kernelweave as kw
from kernelweave.kernels import RBF, Linear, Polynomial

KERNELS = [RBF(0.05), RBF(0.5), RBF(2.0), Linear(), Polynomial(2), RBF(0.3, columns=[0, 1])]
ENGINES = ["packed", "cached", "blocked"]
REGULARIZERS = [kw.LpNorm(p=1), kw.LpNorm(p=2), kw.ElasticNet(0.5), "uniform"]


def fitted(cls, data, **options):
    return cls(KERNELS, tol=1e-4, **options).fit(data.X, data.y)


@pytest.mark.parametrize("regularizer", REGULARIZERS, ids=str)
@pytest.mark.parametrize("engine", ENGINES)
def test_same_certified_objective(binary, regularizer, engine):
    dense = fitted(kw.MKLClassifier, binary, regularizer=regularizer, gram="dense")
    other = fitted(kw.MKLClassifier, binary, regularizer=regularizer, gram=engine)
    assert (dense.gram_, other.gram_) == ("dense", engine)
    assert other.dual_gap_ <= 1e-4
    assert other.objective_ == pytest.approx(dense.objective_, rel=1e-3)
    np.testing.assert_allclose(
        other.decision_function(binary.X_new), dense.decision_function(binary.X_new), atol=0.02
    )


@pytest.mark.parametrize("normalize", ["variance", "spherical", "trace", "dimension", "center", None])
@pytest.mark.parametrize("engine", ENGINES)
def test_every_normalisation(regression, normalize, engine):
    dense, other = (
        fitted(kw.MKLRegressor, regression, normalize=normalize, gram=gram) for gram in ("dense", engine)
    )
    assert other.objective_ == pytest.approx(dense.objective_, rel=1e-3)
    np.testing.assert_allclose(other.predict(regression.X_new), dense.predict(regression.X_new), atol=0.02)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("multiclass", ["ovr", "ovo", "shared"])
def test_models_of_several_classes_share_an_engine(four, engine, multiclass):
    dense, other = (
        fitted(kw.MKLClassifier, four, multiclass=multiclass, gram=gram, n_jobs=2)
        for gram in ("dense", engine)
    )
    np.testing.assert_allclose(other.objective_, dense.objective_, rtol=1e-3)


@pytest.mark.parametrize("engine", ENGINES)
def test_precomputed_matrices(binary, engine):
    K = np.stack([kernel.fit(binary.X)(binary.X) for kernel in KERNELS], axis=2)
    dense, other = (
        kw.MKLClassifier("precomputed", gram=gram, tol=1e-4).fit(K, binary.y) for gram in ("dense", engine)
    )
    assert other.objective_ == pytest.approx(dense.objective_, rel=1e-3)


def test_the_model_says_which_engine_and_why(binary):
    model = fitted(kw.MKLClassifier, binary)
    assert model.gram_ == "dense"
    assert model.gram_reason_.startswith("6 kernels on 60 samples take ")
    tight = fitted(kw.MKLClassifier, binary, memory_limit=int(6.5 * 8 * 60**2))
    assert tight.gram_ == "packed"
    assert "would take" in tight.gram_reason_
    assert "memory_limit allows 187 KB" in tight.gram_reason_
    asked = fitted(kw.MKLClassifier, binary, gram="blocked")
    assert (
        asked.gram_reason_ == "gram='blocked' was asked for: blocks of them are computed again in every pass."
    )


def test_float32_data(binary):
    double, single = (
        kw.MKLClassifier(KERNELS, gram="blocked", tol=1e-3).fit(binary.X.astype(dtype), binary.y)
        for dtype in (np.float64, np.float32)
    )
    assert single.objective_ == pytest.approx(double.objective_, rel=2e-3)


def test_unknown_engine(binary):
    with pytest.raises(
        ValueError, match="gram='sparse' is not a Gram engine: pass one of 'auto', 'dense', 'packed'"
    ):
        fitted(kw.MKLClassifier, binary, gram="sparse")
