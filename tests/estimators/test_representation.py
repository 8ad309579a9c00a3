"""What an estimator shows of itself: parameters, repr, pickle, HTML, tables."""

from __future__ import annotations

import html
import pickle
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

import kernelweave as kw
from kernelweave.estimators._base import weights_table
from kernelweave.kernels import RBF, Linear, Precomputed, Spectrum
from kernelweave.losses import EpsInsensitive
from kernelweave.solvers.multiple import Alternating

KERNELS = {"line": Linear(), "bell": RBF(gamma=0.3)}

FITTED = [
    kw.MKLClassifier(KERNELS),
    kw.MKLClassifier(KERNELS, loss="logistic", normalize="spherical"),
    kw.MKLClassifier(KERNELS, regularizer=kw.LpNorm(p=1), normalize="center"),
    kw.MKLRegressor(KERNELS, loss=EpsInsensitive(eps=0.2)),
    kw.MKLOneClass(KERNELS),
]


# -- parameters ---------------------------------------------------------------------------------


def test_nested_parameters():
    model = kw.MKLClassifier(KERNELS, regularizer=kw.LpNorm(p=1.5), solver=Alternating())
    params = model.get_params()
    assert params["regularizer__p"] == 1.5
    assert params["solver__memory"] == 5
    assert model.get_params(deep=False).keys() < params.keys()
    model.set_params(regularizer__p=4.0, C=3.0, solver__memory=2)
    assert (model.regularizer.p, model.C, model.solver.memory) == (4.0, 3.0, 2)
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(regularizer__q=2.0)


def test_parameters_in_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), kw.MKLClassifier(KERNELS, regularizer=kw.LpNorm()))
    pipeline.set_params(mklclassifier__regularizer__p=1.0)
    assert pipeline[-1].regularizer.p == 1.0


def test_one_kernel_as_a_nested_parameter(binary):
    model = kw.MKLClassifier(RBF(gamma=1.0)).set_params(kernels__gamma=0.3).fit(binary.X, binary.y)
    expected = kw.MKLClassifier(RBF(gamma=0.3)).fit(binary.X, binary.y)
    np.testing.assert_array_equal(model.dual_coef_, expected.dual_coef_)


def test_a_clone_is_unfitted_and_equal(binary):
    model = kw.MKLClassifier(KERNELS, regularizer=kw.LpNorm(p=1.5), C=3.0).fit(binary.X, binary.y)
    copy = clone(model)
    assert not [name for name in vars(copy) if name.endswith("_")]
    assert copy.regularizer is not model.regularizer
    assert repr(copy) == repr(model)
    np.testing.assert_array_equal(copy.fit(binary.X, binary.y).dual_coef_, model.dual_coef_)


def test_fitting_leaves_parameters_alone(binary):
    kernels, regularizer, solver = [RBF("median")], kw.LpNorm(p=1.5), Alternating()
    before = [dict(vars(part)) for part in (kernels[0], regularizer, solver)]
    model = kw.MKLClassifier(kernels, regularizer=regularizer, solver=solver).fit(binary.X, binary.y)
    assert model.kernels is kernels
    assert [dict(vars(part)) for part in (kernels[0], regularizer, solver)] == before


def test_repr_shows_what_is_not_default():
    assert repr(kw.MKLClassifier()) == "MKLClassifier()"
    shown = repr(kw.MKLRegressor([RBF(gamma=0.3)], regularizer=kw.LpNorm(p=1), C=3.0))
    for part in ("MKLRegressor(", "RBF(gamma=0.3)", "LpNorm(p=1)", "C=3.0"):
        assert part in shown


def test_parameters_are_keywords_but_for_the_kernels():
    with pytest.raises(TypeError, match="positional"):
        kw.MKLClassifier([RBF()], "hinge")


def test_fitted_or_not(binary):
    from sklearn.exceptions import NotFittedError

    model = kw.MKLClassifier(KERNELS)
    with pytest.raises(NotFittedError):
        check_is_fitted(model)
    check_is_fitted(model.fit(binary.X, binary.y))


def test_fitting_again_forgets_the_first_fit(four, binary):
    model = kw.MKLClassifier(KERNELS).fit(four.X, four.y)
    model.fit(binary.X, binary.y)
    fresh = kw.MKLClassifier(KERNELS).fit(binary.X, binary.y)
    assert vars(model).keys() == vars(fresh).keys()
    np.testing.assert_array_equal(model.predict_proba(binary.X_new), fresh.predict_proba(binary.X_new))


# -- pickle -------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", FITTED, ids=str)
def test_a_pickled_model_predicts_the_same(binary, estimator):
    model = clone(estimator).fit(binary.X, binary.y)
    copy = pickle.loads(pickle.dumps(model))
    for method in ("predict", "decision_function", "predict_proba", "score_samples"):
        if hasattr(model, method):
            np.testing.assert_array_equal(
                getattr(copy, method)(binary.X_new), getattr(model, method)(binary.X_new)
            )
    assert copy.kernel_names_ == model.kernel_names_
    assert copy.dual_gap_ == model.dual_gap_


@pytest.mark.parametrize("scheme", ["ovr", "ovo", "shared"])
def test_pickled_multiclass_and_precomputed_models(flowers, scheme):
    K = RBF(gamma=0.3)(flowers.X)
    index = np.arange(len(K))[:, None]
    model = kw.MKLClassifier([Precomputed(K)], multiclass=scheme).fit(index, flowers.y)
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict_proba(index), model.predict_proba(index))


def test_a_pickled_string_model():
    words = np.array([["aabba"], ["ababa"], ["ccdcc"], ["cdcdc"]])
    model = kw.MKLClassifier([Spectrum(k=1), Spectrum(k=2)]).fit(words, [0, 0, 1, 1])
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.decision_function(words), model.decision_function(words))


def test_a_model_keeps_only_its_support_vectors(binary):
    """The size of a model grows with its support, not with its training samples."""
    far = np.vstack([binary.X, np.array([[50.0, 0, 0, 0]]).repeat(2000, axis=0)])
    y = np.concatenate([binary.y, np.ones(2000, dtype=int)])
    model = kw.MKLClassifier([Linear()], C=0.1).fit(far, y)
    assert len(model.support_) < 200
    without = [len(pickle.dumps(model.dual_coef_)), len(pickle.dumps(far))]
    assert len(pickle.dumps(model)) < without[0] + 0.5 * without[1]


# -- HTML and tables ----------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", FITTED, ids=str)
def test_html_shows_the_kernels_with_their_weights(binary, estimator):
    model = clone(estimator).fit(binary.X, binary.y)
    page = model._repr_html_()
    for name, weight in zip(model.kernel_names_, model.weights_, strict=True):
        row = re.search(f"<th[^>]*>{name}</th>(.*?)</tr>", page)
        assert row
        assert f"{weight:.4g}" in row[1]


def test_html_of_several_models_has_a_column_each(four):
    page = kw.MKLClassifier(KERNELS).fit(four.X, four.y)._repr_html_()
    row = re.search("<th[^>]*>bell</th>(.*?)</tr>", page)
    assert row[1].count("<td>") == 4


def test_html_before_fitting_and_in_a_pipeline(binary):
    assert "MKLClassifier" in kw.MKLClassifier(KERNELS)._repr_html_()
    pipeline = make_pipeline(StandardScaler(), kw.MKLClassifier(KERNELS)).fit(binary.X, binary.y)
    assert "MKLClassifier" in pipeline._repr_html_()


def test_html_escapes_the_names(binary):
    page = kw.MKLClassifier({"<script>": Linear(), "b": RBF()}).fit(binary.X, binary.y)._repr_html_()
    table = page[page.index("kernelweave-weights") :]
    assert "&lt;script&gt;" in table
    assert "<script>" not in table


def test_html_of_very_many_kernels_shows_the_heaviest():
    weights = np.random.default_rng(0).random((1, 100_000))
    names = [f"k{m}" for m in range(100_000)]
    table = weights_table(names, weights, ["f"])
    shown = re.findall("<th scope='row'[^>]*>(k[0-9]+)</th>", table)
    assert shown == [names[m] for m in np.argsort(-weights[0])[:50]]
    assert "and 99,950 kernels of smaller weight" in table
    assert "of smaller weight" not in weights_table(names[:50], weights[:, :50], ["f"])


def test_weights_frame(binary, four):
    model = kw.MKLClassifier(KERNELS).fit(binary.X, binary.y)
    table = model.weights_frame()
    assert list(table["kernel"]) == ["line", "bell"]
    np.testing.assert_array_equal(table["weight"], model.weights_)
    np.testing.assert_array_equal(table["norm"], model.norms_)
    several = kw.MKLClassifier(KERNELS).fit(four.X, four.y)
    table = several.weights_frame()
    assert len(table) == 8
    wide = table.pivot(index="model", columns="kernel", values="weight")[["line", "bell"]]
    np.testing.assert_array_equal(wide, several.weights_)


# -- names of models ----------------------------------------------------------------------------

SPECIES = np.array(["ash", "<elm>", "fir"])
PAIRS = ["ash vs <elm>", "fir vs <elm>", "fir vs ash"]
SORTED = ["<elm>", "ash", "fir"]


def heads(model):
    """Titles of the columns of the table of a notebook."""
    page = model._repr_html_()
    table = page[page.index("kernelweave-weights") :]
    return [html.unescape(title) for title in re.findall("<th scope='col'>(.*?)</th>", table)]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (kw.MKLClassifier(KERNELS), SORTED),
        (kw.MKLClassifier(KERNELS, multiclass="ovo"), PAIRS),
        (kw.MKLClassifier(KERNELS, multiclass="shared"), ["all classes"]),
        (kw.MKLClassifierCV(KERNELS, Cs=[1.0], cv=2), SORTED),
        (kw.EmpiricalBayesClassifier(KERNELS), SORTED),
        (kw.GMKLClassifier(), SORTED),
        (kw.GMKLClassifier(multiclass="shared"), ["all classes"]),
        (kw.GroupOMPClassifier(KERNELS), ["all classes"]),
    ],
    ids=str,
)
def test_models_have_the_names_of_their_classes(model, expected):
    """Three classes have three pairs: counting alone does not tell them apart."""
    rng = np.random.default_rng(0)
    labels = np.arange(45) % 3
    model = clone(model).fit(rng.normal(size=(45, 2)) + labels[:, None], SPECIES[labels])
    assert list(dict.fromkeys(model.weights_frame()["model"])) == expected
    inner = getattr(model, "best_estimator_", model)
    shown = (
        ["kernel", "weight"] if len(expected) == 1 else ["kernel", *(f"weight, {name}" for name in expected)]
    )
    assert heads(inner) == shown


def test_a_pair_is_named_as_it_is_trained():
    """The decision value of "b vs a" is positive on samples of b."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 15)
    X = 4.0 * np.eye(3)[labels] + 0.1 * rng.normal(size=(45, 3))
    model = kw.MKLClassifier([Linear()], multiclass="ovo").fit(X, np.array(["a", "b", "c"])[labels])
    values = model._decision(X)
    for k, name in enumerate(dict.fromkeys(model.weights_frame()["model"])):
        positive, negative = name.split(" vs ")
        assert (values[labels == "abc".index(positive), k] > 0).all()
        assert (values[labels == "abc".index(negative), k] < 0).all()


@pytest.mark.parametrize("estimator", [kw.MKLRegressor, kw.EmpiricalBayesRegressor])
def test_outputs_have_the_names_of_their_columns(estimator):
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = estimator([RBF(), Linear()], multioutput="independent")
    y = pd.DataFrame({"yield": X[:, 0], "purity": X[:, 1] ** 2})
    assert list(dict.fromkeys(model.fit(X, y).weights_frame()["model"])) == ["yield", "purity"]
    assert heads(model) == ["kernel", "weight, yield", "weight, purity"]
    assert list(dict.fromkeys(model.fit(X, y.to_numpy()).weights_frame()["model"])) == [0, 1]
