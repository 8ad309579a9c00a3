"""A model that went through a file says the same as before, bit for bit."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.compose import make_column_selector
from sklearn.model_selection import KFold

import kernelweave as kw
from kernelweave.inspection import KernelWeightsDisplay, contributions
from kernelweave.kernels import RBF, Linear, Precomputed, Spectrum, per_feature, per_group, per_task
from kernelweave.kernels import random_subsets as subsets
from kernelweave.losses import Huber
from kernelweave.persistence import NotStored
from kernelweave.persistence.codec import Reader, Writer
from kernelweave.persistence.files import FORMS
from kernelweave.solvers.multiple import Alternating

from ..targets import targets_for
from .cases import (
    KERNELS,
    LEARNED,
    MODELS,
    N_TRAIN,
    PARTS,
    example,
    kernel_case,
    labels,
    numbers,
    of_kind,
    strings,
    targets,
)
from .conftest import fitted

#: quick settings: models that have not converged are as good to store
OPTIONS: dict[str, dict[str, Any]] = {
    "MKLClassifier": {"max_iter": 2},
    "MKLRegressor": {"max_iter": 2},
    "MKLOneClass": {"max_iter": 2},
    "MKLClassifierCV": {"Cs": [1.0], "cv": 2, "max_iter": 1},
    "MKLRegressorCV": {"Cs": [1.0], "cv": 2, "max_iter": 1},
    "GroupOMPClassifier": {"n_kernels": 2},
    "GroupOMPRegressor": {"n_kernels": 2},
    "GroupOMPClassifierCV": {"alphas": [0.1], "cv": 2, "n_kernels": 2},
    "GroupOMPRegressorCV": {"alphas": [0.1], "cv": 2, "n_kernels": 2},
    "GMKLClassifier": {"max_iter": 1, "tol": 1.0},
    "GMKLRegressor": {"max_iter": 1, "tol": 1.0},
    "GMKLOneClass": {"max_iter": 1, "tol": 1.0},
    "EmpiricalBayesClassifier": {"max_iter": 1},
    "EmpiricalBayesRegressor": {"max_iter": 1},
}
SEVERAL = [name for name in MODELS if not name.startswith("GMKL")]
WEIGHTED = ["MKLClassifier", "MKLRegressor", "MKLOneClass"]


def make(name: str, *args: Any, **more: Any) -> Any:
    return getattr(kw, name)(*args, **{**OPTIONS.get(name, {}), **more})


def fit(model: Any, X: Any) -> Any:
    return fitted(model, X, *targets_for(model, targets(), labels() == "ash"))


@pytest.mark.parametrize("key", PARTS)
def test_every_part_keeps_its_class_and_parameters(key: str) -> None:
    part, writer = example(key), Writer(FORMS)
    json = writer.value(part)
    again = Reader(FORMS, writer.arrays).value(json)
    assert type(again) is type(part)
    assert repr(again.get_params(deep=False)) == repr(part.get_params(deep=False))


def rotated(first: list[Any], second: list[Any]) -> list[tuple[Any, Any]]:
    """A covering design: every member of both lists at least once, the pairs rotated."""
    return [(first[i % len(first)], second[i % len(second)]) for i in range(max(len(first), len(second)))]


def test_the_design_covers_every_estimator_and_every_kernel() -> None:
    keys, names = map(set, zip(*rotated(KERNELS, SEVERAL), strict=True))
    assert (keys, names) == (set(KERNELS), set(SEVERAL))


def check_kernel(key: str, name: str, round_trip: Any) -> None:
    case = kernel_case(key)
    loaded = round_trip(fit(make(name, case.spec), case.X), case.X_new)
    assert re.sub(r"<not stored: (.*?)>", r"\1", repr(loaded.kernels)) == repr(case.spec)


@pytest.mark.parametrize(("key", "name"), rotated(KERNELS, SEVERAL))
def test_every_estimator_and_every_kernel(key: str, name: str, round_trip: Any) -> None:
    check_kernel(key, name, round_trip)


@pytest.mark.slow
@pytest.mark.parametrize("name", SEVERAL)
def test_every_estimator_with_every_kernel(name: str, round_trip: Any) -> None:
    for key in KERNELS:
        check_kernel(key, name, round_trip)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", WEIGHTED)
@pytest.mark.parametrize("key", of_kind("regularizer"))
def test_every_estimator_with_every_regularizer(key: str, name: str, round_trip: Any) -> None:
    regularizer = example(key)
    if name == "MKLOneClass" and regularizer.homogeneous:
        pytest.skip("MKLOneClass refuses penalties that grow as the objective does")
    model = make(name, [RBF(), Linear(), RBF(factor=0.1)], regularizer=regularizer)
    loaded = round_trip(fit(model, numbers(N_TRAIN, 0)), numbers(5, 1))
    assert repr(loaded) == repr(model)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("key", of_kind("penalty", "LogDet"))
@pytest.mark.parametrize("kernel", LEARNED)
def test_learned_kernels_with_every_penalty(kernel: str, key: str, round_trip: Any) -> None:
    if kernel == "kernel:MetricRBF" and example(key).kinks(1).any():
        pytest.skip("MetricRBF refuses penalties with a kink")
    for name in ("GMKLClassifier", "GMKLRegressor"):
        model = make(name, example(kernel), regularizer=example(key))
        loaded = round_trip(fit(model, numbers(N_TRAIN, 0)), numbers(5, 1))
        assert np.array_equal(loaded.ranking_, model.ranking_)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("key", of_kind("loss", "OneClass", "MulticlassHinge"))
def test_every_loss(key: str, round_trip: Any) -> None:
    loss = example(key)
    classifiers = ["MKLClassifier", "GroupOMPClassifier", "GMKLClassifier"]
    regressors = ["MKLRegressor", "GroupOMPRegressor", "GMKLRegressor"]
    names = {
        "regression": [*classifiers, *regressors],
        "ranking": ["MKLRegressor", "GMKLRegressor"],
        "quantile": ["MKLQuantileRegressor"],
        "survival": ["MKLSurvival"],
        "ordinal": ["MKLOrdinalClassifier"],
    }
    own = {} if loss.task == "quantile" else {"loss": loss}
    for name in names.get(loss.task, classifiers):
        round_trip(fit(make(name, **own), numbers(N_TRAIN, 0)), numbers(5, 1))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rule", ["variance", "spherical", "trace", "dimension", "center", None])
@pytest.mark.parametrize("name", SEVERAL)
def test_every_normalisation(name: str, rule: str | None, round_trip: Any) -> None:
    if (name, rule) == ("MKLOneClass", "center"):
        pytest.skip("MKLOneClass refuses it")
    round_trip(fit(make(name, normalize=rule), numbers(N_TRAIN, 0)), numbers(5, 1))


@pytest.mark.wide
@pytest.mark.sampled(4)
@pytest.mark.parametrize("scheme", ["ovr", "ovo", "shared"])
@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_every_way_to_several_classes(scheme: str, loss: str, round_trip: Any) -> None:
    X = numbers(N_TRAIN, 0)
    for y in (labels(), labels() == "ash", labels().astype(object), np.arange(N_TRAIN) % 4 - 1):
        round_trip(fitted(kw.MKLClassifier(multiclass=scheme, loss=loss), X, y), numbers(5, 1))
        if scheme != "ovo":
            round_trip(fitted(kw.GMKLClassifier(multiclass=scheme, loss=loss), X, y), numbers(5, 1))


@pytest.mark.parametrize(
    "name", ["MKLRegressor", "GroupOMPRegressor", "GMKLRegressor", "EmpiricalBayesRegressor"]
)
def test_several_outputs(name: str, round_trip: Any) -> None:
    Y = np.column_stack([targets(), targets() ** 2])
    round_trip(fitted(make(name), numbers(N_TRAIN, 0), Y), numbers(5, 1))
    if "multioutput" in make(name).get_params():
        round_trip(fitted(make(name, multioutput="independent"), numbers(N_TRAIN, 0), Y), numbers(5, 1))


@pytest.mark.parametrize("name", SEVERAL)
def test_precomputed_stacks(name: str, round_trip: Any) -> None:
    X, X_new = numbers(N_TRAIN, 0), numbers(5, 1)
    kernels = [Linear(), RBF(gamma=0.3), RBF(gamma=3.0)]
    stack = kw.KernelStack([kernel(X) for kernel in kernels], names=["one", "two", "three"])
    new = np.dstack([kernel(X_new, X) for kernel in kernels])
    loaded = round_trip(fit(make(name, "precomputed"), stack), new)
    assert loaded.kernel_names_ == ["one", "two", "three"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array, sparse.csc_array])
def test_sparse_rows(name: str, kind: Any, round_trip: Any) -> None:
    X, X_new = (np.where(numbers(n, n) > 2.0, numbers(n, n), 0.0) for n in (N_TRAIN, 7))
    round_trip(fit(make(name, [RBF(), Linear()]), kind(X)), kind(X_new))


def frame(n: int, seed: int) -> pd.DataFrame:
    table = pd.DataFrame(numbers(n, seed), columns=["a", "b", "c", "d"])
    when = pd.date_range("2020-01-01", periods=n)
    words = strings(n, seed).ravel()
    return table.assign(seq=words, task=pd.Categorical(np.array(["u", "v"])[np.arange(n) % 2]), when=when)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", SEVERAL)
def test_named_columns_of_several_kinds(name: str, round_trip: Any) -> None:
    spec = {
        "views": RBF(columns=["a", "b"]),
        "words": Spectrum(2, columns="seq"),
        "tasks": per_task(Linear(columns=["c"]), task="task"),
        "numbers": RBF(columns=make_column_selector(dtype_include=np.number)),
    }
    loaded = round_trip(fit(make(name, spec), frame(N_TRAIN, 0)), frame(7, 1))
    assert list(loaded.feature_names_in_) == list(frame(2, 0).columns)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(frame(7, 1).rename(columns={"a": "z"}))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MODELS)
def test_frames_of_numbers_and_single_precision(name: str, round_trip: Any) -> None:
    table = pd.DataFrame(numbers(N_TRAIN, 0).astype(np.float32), columns=list("abcd"))
    round_trip(fit(make(name), table), table[:6])
    round_trip(fit(make(name), np.asfortranarray(table)), table.to_numpy()[:6])


TOGETHER = [per_feature(RBF()), [per_feature(RBF()), Linear()], subsets(60), subsets(600)]


@pytest.mark.wide
@pytest.mark.sampled(3)
@pytest.mark.parametrize("regularizer", ["lp", kw.LpNorm(1)], ids=str)
@pytest.mark.parametrize(("spec", "name"), rotated(TOGETHER, WEIGHTED), ids=str)
def test_kernels_that_are_computed_together(spec: Any, name: str, regularizer: Any, round_trip: Any) -> None:
    rng = np.random.default_rng(0)
    X, X_new = rng.normal(size=(N_TRAIN, 30)), rng.normal(size=(6, 30))
    model = fit(make(name, spec, regularizer=regularizer), X)
    loaded = round_trip(model, X_new)
    assert np.array_equal(contributions(model, X_new), contributions(loaded, X_new))


@pytest.mark.wide
@pytest.mark.parametrize("name", WEIGHTED)
def test_kernels_computed_together_on_many_columns_and_on_named_ones(name: str, round_trip: Any) -> None:
    rng = np.random.default_rng(0)
    wide = rng.normal(size=(N_TRAIN, 1100))
    round_trip(fit(make(name, subsets(20)), wide), wide[:5])
    table = pd.DataFrame(rng.normal(size=(N_TRAIN, 30)), columns=[f"c{k}" for k in range(30)])
    round_trip(fit(make(name, [per_feature(RBF()), Linear()]), table), table[:5])


def test_parameters_of_many_types_come_back(round_trip: Any) -> None:
    model = kw.MKLClassifier(
        [("one", RBF(np.float64(0.5)), [0, 1]), per_group({"g": slice(0, 3)}, [RBF(), Linear()])],
        loss=Huber(delta=0.3),
        class_weight={True: 2, False: np.float32(1.5)},
        solver=Alternating(),
        memory_limit="1GB",
        C=np.float64(3.0),
    )
    loaded = round_trip(fit(model, numbers(N_TRAIN, 0)), numbers(5, 1))
    assert repr(loaded.get_params()) == repr(model.get_params())
    assert loaded.class_weight == model.class_weight


def test_what_only_a_new_fit_needs_is_named_and_left_out(round_trip: Any) -> None:
    search = kw.MKLClassifierCV(Cs=[1.0], cv=KFold(2), scoring=lambda model, X, y: 0.5)
    loaded = round_trip(fit(search, numbers(N_TRAIN, 0)), numbers(5, 1))
    assert loaded.cv == NotStored("KFold")
    assert isinstance(loaded.scoring, NotStored)
    seeded = kw.MKLClassifier(random_state=np.random.RandomState(0))
    loaded = round_trip(fit(seeded, numbers(N_TRAIN, 0)), numbers(5, 1))
    assert "not stored: RandomState" in repr(loaded)
    assert (
        fit(loaded.set_params(random_state=0), numbers(N_TRAIN, 0)).score(numbers(5, 1), labels(5) == "ash")
        >= 0
    )


def test_a_checkpoint_path_does_not_travel(tmp_path: Any, round_trip: Any) -> None:
    model = kw.MKLClassifier()
    if "checkpoint" not in model.get_params():
        pytest.skip("estimators have no checkpoint")
    model.set_params(checkpoint=str(tmp_path / "state"))
    loaded = round_trip(fit(model, numbers(N_TRAIN, 0)), numbers(5, 1))
    assert loaded.checkpoint is None


def test_only_support_vectors_and_live_kernels_are_kept(tmp_path: Any) -> None:
    X = np.random.default_rng(0).normal(size=(120, 60))
    kernels = [Linear(columns=[k]) for k in range(60)]
    model = kw.MKLClassifier(kernels, regularizer=kw.LpNorm(1), C=0.1, tol=0.05)
    fitted(model, X, X[:, 0] > 0)
    kw.save_model(model, tmp_path / "sparse.kw")
    source = kw.load_model(tmp_path / "sparse.kw").model_.source
    assert source.X.shape == (len(model.support_), 60)
    assert len(model.support_) < 120
    kept = [m for m, kernel in enumerate(source.kernels) if kernel is not None]
    assert kept == np.flatnonzero(model.weights_).tolist()
    assert len(kept) < 40


def test_matrices_of_kernels_without_weight_are_left_out(tmp_path: Any, round_trip: Any) -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = X[:, 0] > 0
    good, noise = X[:, :1] @ X[:, :1].T, np.eye(60)
    model = kw.MKLClassifier([Precomputed(good), Precomputed(noise), good], regularizer=kw.LpNorm(1), C=0.1)
    index = np.arange(60)[:, None]
    loaded = round_trip(fitted(model, index, y), index)
    assert model.weights_[1] == 0.0
    size = (tmp_path / "first.kw").stat().st_size
    assert size < 1.5 * good.nbytes
    assert loaded.kernels[1] == NotStored("Precomputed(60 x 60)")
    with pytest.raises(ValueError, match=r"<not stored: Precomputed\(60 x 60\)> is not a kernel"):
        fitted(loaded, index, y)


def test_a_loaded_model_draws_itself(round_trip: Any) -> None:
    model = fit(kw.MKLClassifier({"wide": RBF(), "flat": Linear()}), numbers(N_TRAIN, 0))
    loaded = round_trip(model, numbers(5, 1))
    assert loaded._html_repr().count("<table class='kernelweave-weights'>") == 1
    shown = KernelWeightsDisplay.from_estimator(loaded).ax_.get_yticklabels()
    assert [text.get_text() for text in shown] == ["wide", "flat"]
    assert str(loaded) == str(model)


def test_a_selector_of_features_still_selects(round_trip: Any) -> None:
    X = numbers(N_TRAIN, 0)
    model = fitted(kw.GMKLRegressor(n_features_to_select=2), X, np.sin(X[:, 1]) + X[:, 2])
    loaded = round_trip(model, X)
    assert np.array_equal(loaded.transform(X), model.transform(X))
    assert np.array_equal(loaded.feature_importances_, model.feature_importances_)


def test_a_path_keeps_its_models(round_trip: Any) -> None:
    model = fit(kw.GroupOMPRegressor(validation_fraction=0.3, random_state=0), numbers(N_TRAIN, 0))
    loaded = round_trip(model, numbers(5, 1))
    assert repr(loaded.path_) == repr(model.path_)
    assert loaded.path_.frame().equals(model.path_.frame())
    assert np.array_equal(loaded.predict(numbers(5, 1), 1), model.predict(numbers(5, 1), 1))


@pytest.mark.parametrize("name", SEVERAL)
def test_contributions_of_kernels_come_from_the_file_too(name: str, round_trip: Any) -> None:
    X, X_new = numbers(N_TRAIN, 0), numbers(5, 1)
    model = fit(make(name, [RBF(), Linear(), RBF(factor=0.1)]), X)
    loaded = round_trip(model, X_new)
    expected, found = contributions(model, X_new), contributions(loaded, X_new)
    assert np.array_equal(np.asarray(expected), np.asarray(found))


def test_a_folder_that_is_not_there_is_named(tmp_path: Any) -> None:
    model = fit(make("MKLRegressor", [Linear()]), numbers(N_TRAIN, 0))
    with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere' for m.kw: make it first"):
        kw.save_model(model, tmp_path / "nowhere" / "m.kw")
