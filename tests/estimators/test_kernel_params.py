"""Parameters of kernels in lists and dicts: ``kernels__0__gamma``, as in scikit-learn's `Pipeline`."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave._registry import Registry
from kernelweave.kernels import RBF, Linear, Polynomial, Spectrum, per_feature
from kernelweave.kernels.parametric import WeightedSum

ESTIMATORS = [
    kw.MKLClassifier,
    kw.MKLRegressor,
    kw.MKLOneClass,
    kw.MKLClassifierCV,
    kw.MKLRegressorCV,
    kw.GroupOMPClassifier,
    kw.GroupOMPRegressor,
    kw.GroupOMPClassifierCV,
    kw.GroupOMPRegressorCV,
    kw.EmpiricalBayesClassifier,
    kw.EmpiricalBayesRegressor,
]

#: kernels, names of all kernels among the parameters, and the way to the width of a Gaussian kernel
SHAPES = {
    "list": (lambda: [Linear(), RBF(gamma=0.5)], ["0", "1"], "1__gamma"),
    "tuple": (lambda: (Linear(), RBF(gamma=0.5)), ["0", "1"], "1__gamma"),
    "dict": (lambda: {"a": Linear(), "wide one": RBF(gamma=0.5)}, ["a", "wide one"], "wide one__gamma"),
    "pairs": (lambda: [("a", Linear()), ("b", RBF(gamma=0.5))], ["a", "b"], "b__gamma"),
    "triples": (lambda: [("a", RBF(gamma=0.5), [0]), Linear()], ["a", "1"], "a__gamma"),
    "dict of lists": (lambda: {"v": [Linear(), RBF(gamma=0.5)]}, ["v", "v__0", "v__1"], "v__1__gamma"),
    "sum": (lambda: [Linear() + RBF(gamma=0.5)], ["0", "0__0", "0__1"], "0__1__gamma"),
    "multiple": (lambda: [2.0 * RBF(gamma=0.5)], ["0", "0__kernel"], "0__kernel__gamma"),
    "family": (lambda: [per_feature(RBF(gamma=0.5))], ["0", "0__kernel"], "0__kernel__gamma"),
    "family of a list": (
        lambda: per_feature([Linear(), RBF(gamma=0.5)]),
        ["kernel", "kernel__0", "kernel__1"],
        "kernel__1__gamma",
    ),
    "one kernel": (lambda: RBF(gamma=0.5), ["gamma"], "gamma"),
    "name with underscores": (lambda: {"a": Linear(), "a__b": RBF(gamma=0.5)}, ["a", "a__b"], "a__b__gamma"),
}


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize(("make", "names", "path"), SHAPES.values(), ids=SHAPES)
def test_parameters_of_kernels_are_found_and_set(estimator, make, names, path):
    model, key = estimator(make()), f"kernels__{path}"
    params = model.get_params()
    assert {f"kernels__{name}" for name in names} <= set(params)
    assert params[key] == 0.5
    assert model.set_params(**{key: 0.25}) is model
    assert model.get_params()[key] == 0.25
    assert key not in model.get_params(deep=False)
    # every parameter that is shown can be set to what it is
    shown = model.get_params()
    after = clone(model).set_params(**{k: v for k, v in shown.items() if k.startswith("kernels__")})
    assert {k: repr(v) for k, v in after.get_params().items()} == {k: repr(v) for k, v in shown.items()}


def test_setting_a_parameter_is_giving_the_kernel_with_it(binary):
    set_later = kw.MKLClassifier([Linear(), RBF()]).set_params(kernels__1__gamma=0.3).fit(binary.X, binary.y)
    given = kw.MKLClassifier([Linear(), RBF(gamma=0.3)]).fit(binary.X, binary.y)
    np.testing.assert_array_equal(set_later.dual_coef_, given.dual_coef_)


def test_a_parameter_is_set_on_the_kernel_and_a_clone_has_its_own():
    wide, kernels = RBF(gamma=1.0), [Linear()]
    kernels.append(wide)
    model = kw.MKLClassifier(kernels)
    clone(model).set_params(kernels__1__gamma=0.1)
    assert wide.gamma == 1.0
    model.set_params(kernels__1__gamma=0.1)
    assert wide.gamma == 0.1
    assert model.kernels is kernels


@pytest.mark.parametrize(
    ("kernels", "name"),
    [
        ([Linear(), RBF()], "1"),
        ({"a": Linear(), "b": RBF()}, "b"),
        ([("a", Linear()), ("b", RBF(), [0])], "b"),
    ],
    ids=["list", "dict", "named"],
)
def test_a_kernel_is_replaced_and_the_users_list_is_not_touched(kernels, name):
    before = dict(kernels) if isinstance(kernels, dict) else list(kernels)
    model = kw.MKLClassifier(kernels).set_params(
        **{f"kernels__{name}": Polynomial(), f"kernels__{name}__degree": 2}
    )
    assert repr(model.get_params()[f"kernels__{name}"]) == "Polynomial(degree=2)"
    assert kernels == before
    assert type(model.kernels) is type(kernels)
    if name == "b" and isinstance(kernels, list):
        assert model.kernels[1][2] == [0]


def test_a_list_and_its_kernels_may_be_set_together():
    model = kw.MKLClassifier().set_params(kernels=[RBF(), Linear()], kernels__0__gamma=0.7)
    assert model.kernels[0].gamma == 0.7


def test_other_nested_parameters_still_work():
    model = kw.MKLClassifier([Linear(), RBF()], regularizer=kw.LpNorm(p=1))
    model.set_params(regularizer__p=1.5, C=3.0, kernels__1__gamma=0.1)
    assert (model.regularizer.p, model.C, model.kernels[1].gamma) == (1.5, 3.0, 0.1)


def test_a_search_varies_kernels(binary):
    pipeline = make_pipeline(StandardScaler(), kw.MKLClassifier({"lin": Linear(), "rbf": RBF()}))
    grid = {
        "mklclassifier__kernels__rbf__gamma": [0.01, 0.3],
        "mklclassifier__kernels__lin": [Linear(), RBF(5.0)],
    }
    search = GridSearchCV(pipeline, grid, cv=3).fit(binary.X, binary.y)
    assert len(search.cv_results_["params"]) == 4
    best = dict(search.best_params_)
    kernels = {
        "lin": best["mklclassifier__kernels__lin"],
        "rbf": RBF(best["mklclassifier__kernels__rbf__gamma"]),
    }
    direct = make_pipeline(StandardScaler(), kw.MKLClassifier(kernels)).fit(binary.X, binary.y)
    np.testing.assert_array_equal(search.best_estimator_[-1].dual_coef_, direct[-1].dual_coef_)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize(
    ("kernels", "key", "message"),
    [
        ([Linear(), RBF()], "kernels__2__gamma", r"'kernels__2__gamma'.*\['kernels__0', 'kernels__1'\]"),
        ({"a": Linear()}, "kernels__b", r"'kernels__b'.*\['kernels__a'\]"),
        ({"v": [Linear()]}, "kernels__v__1", r"'kernels__v__1'.*\['kernels__v__0'\]"),
        ([Linear(), RBF()], "kernels__1__gama", r"Invalid parameter 'gama' for estimator RBF\(\).*'gamma'"),
        ("auto", "kernels__0__gamma", r"'kernels__0__gamma'.*kernels='auto' has no parameters"),
        (["linear", "rbf"], "kernels__1__gamma", r"'kernels__1__gamma'.*kernels__1='rbf' has no parameters"),
        ([Linear()], "kernel__0", r"Invalid parameter 'kernel' for estimator.*'kernels'"),
    ],
)
def test_an_unknown_name_lists_those_there_are(estimator, kernels, key, message):
    with pytest.raises(ValueError, match=message):
        estimator(kernels).set_params(**{key: 1})


def test_kernels_by_name_have_no_parameters():
    assert not [key for key in kw.MKLClassifier("auto").get_params() if key.startswith("kernels__")]
    assert kw.MKLClassifier([Spectrum(3), "rbf"]).get_params()["kernels__1"] == "rbf"


def test_kernels_inside_a_parametric_kernel():
    model = kw.GMKLClassifier(WeightedSum([Linear(), RBF(gamma=0.5)]))
    assert model.get_params()["kernel__kernels__1__gamma"] == 0.5
    model.set_params(kernel__kernels__1__gamma=0.1, kernel__kernels__0=Polynomial())
    assert repr(model.kernel.kernels) == "[Polynomial(), RBF(gamma=0.1)]"


# -- parts given by name --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "parts"),
    [
        (kw.MKLClassifier([Linear()], multiclass="ovo"), {"loss": 1, "regularizer": 1}),
        (kw.MKLClassifier([Linear()], approximation="nystroem", rank=5), {"loss": 1, "regularizer": 1}),
        (kw.GMKLClassifier(max_iter=500), {"loss": 1, "regularizer": 1}),
        (kw.GroupOMPClassifier([Linear(), RBF()], validation_fraction=0.3, random_state=0), {"loss": 1}),
        (kw.MKLClassifierCV([Linear()], Cs=[1.0], cv=2), {"loss": 3, "regularizer": 3}),  # point, data, best
    ],
)
def test_a_fit_looks_its_parts_up_once(model, parts, flowers, monkeypatch):
    looked, resolve = Counter(), Registry.resolve

    def counting(self, spec, base, argument=None):
        looked[argument or self.kind] += isinstance(spec, str)
        return resolve(self, spec, base, argument)

    monkeypatch.setattr(Registry, "resolve", counting)
    model.fit(flowers.X, flowers.y)
    assert {name: looked[name] for name in ("loss", "regularizer") if looked[name]} == parts


def test_a_part_given_by_name_has_parameters():
    model = kw.GMKLRegressor(loss="huber").set_params(loss__delta=2.0, regularizer__strength=0.5)
    assert (model.loss.delta, model.regularizer.strength) == (2.0, 0.5)
    assert kw.MKLRegressor().set_params(regularizer__p=1).regularizer.p == 1
