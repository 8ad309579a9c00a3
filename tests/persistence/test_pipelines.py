"""Scikit-learn's pipelines in model files: the same predictions, and nothing but classes of the list."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import set_config
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_classif
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

import kernelweave as kw
from kernelweave.kernels import RBF, Linear
from kernelweave.persistence import ModelFileError
from kernelweave.persistence.pipelines import CLASSES, class_of

from .conftest import fitted
from .test_container import parts, rewrite

N = 40


def frame(seed: int = 0, n: int = N) -> pd.DataFrame:
    """Numbers, one with gaps, and two columns of categories, one with gaps."""
    rng = np.random.default_rng(seed)
    gaps = np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n))
    return pd.DataFrame(
        {
            "a": rng.normal(3.0, 2.0, n),
            "b": rng.gamma(2.0, size=n),
            "gaps": gaps,
            "colour": rng.choice(["red", "green", "blue"], n),
            "shape": rng.choice(np.array(["round", "square", None], dtype=object), n),
        }
    )


def classes(X: pd.DataFrame) -> np.ndarray:
    return np.where(X["a"] + (X["colour"] == "red") > 3.0, "yes", "no")


MKL = kw.MKLClassifier([RBF(), Linear()])

#: what is put before a model of the numbers a and b
OF_NUMBERS: dict[str, Any] = {
    "standard": StandardScaler(),
    "without mean": StandardScaler(with_mean=False),
    "nothing": StandardScaler(with_mean=False, with_std=False),
    "range": MinMaxScaler(clip=True),
    "largest": MaxAbsScaler(),
    "quartiles": RobustScaler(),
    "length": Normalizer(),
    "power": PowerTransformer(),
    "power alone": PowerTransformer(standardize=False),
    "ranks": QuantileTransformer(n_quantiles=10),
    "ranks, normal": QuantileTransformer(n_quantiles=10, output_distribution="normal", random_state=0),
    "components": PCA(1, random_state=np.random.RandomState(0)),
    "components, white": PCA(whiten=True),
    "best": SelectKBest(f_classif, k=1),
    "varied": VarianceThreshold(),
    "filled": SimpleImputer(strategy="median", add_indicator=True),
    "passthrough": "passthrough",
    "several": make_pipeline(StandardScaler(), PCA(), MinMaxScaler()),
    "union": make_union(StandardScaler(), PCA(1)),
    "frames": StandardScaler().set_output(transform="pandas"),
    "identity": FunctionTransformer(),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("before", OF_NUMBERS.values(), ids=OF_NUMBERS)
@pytest.mark.parametrize("table", [True, False], ids=["frame", "array"])
def test_transformers_of_numbers(before: Any, table: bool, round_trip: Callable[..., Any]) -> None:
    X, new = frame()[["a", "b"]], frame(1)[["a", "b"]]
    y = classes(frame())
    step = before if isinstance(before, str) else clone(before)
    if hasattr(before, "_sklearn_output_config"):
        step.set_output(transform="pandas")
    data = (X, new) if table else (X.to_numpy(), new.to_numpy())
    round_trip(fitted(Pipeline([("before", step), ("model", clone(MKL))]), data[0], y), data[1])


NAN = np.nan
ENCODERS: dict[str, Any] = {
    "one-hot": OneHotEncoder(handle_unknown="ignore"),
    "one-hot, dense": OneHotEncoder(sparse_output=False, dtype=np.float32),
    "one-hot, dropped": OneHotEncoder(drop="first", sparse_output=False),
    "one-hot, rare ones together": OneHotEncoder(min_frequency=12, handle_unknown="infrequent_if_exist"),
    "one-hot of a list": OneHotEncoder(
        categories=[["blue", "green", "red", "x"], ["round", "square", np.nan]]
    ),
    "ordinal": OrdinalEncoder(encoded_missing_value=-1),
    "ordinal, unknown": OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-2, encoded_missing_value=-1
    ),
    "filled first": make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()),
    "filled with a word": make_pipeline(
        SimpleImputer(strategy="constant", fill_value="none"), OneHotEncoder()
    ),
}


@pytest.mark.parametrize("encoder", ENCODERS.values(), ids=ENCODERS)
def test_columns_of_several_kinds(encoder: Any, round_trip: Callable[..., Any]) -> None:
    numbers = make_pipeline(SimpleImputer(strategy="median"), StandardScaler())
    columns = ColumnTransformer(
        [("numbers", numbers, ["a", "gaps"]), ("words", clone(encoder), ["colour", "shape"])],
        remainder="passthrough",
        n_jobs=1,
    )
    X, new = frame(), frame(1)
    loaded = round_trip(fitted(make_pipeline(columns, clone(MKL)), X, classes(X)), new)
    np.testing.assert_array_equal(loaded.predict(new[new.columns[::-1]]), loaded.predict(new))
    with pytest.raises(ValueError, match="missing"):
        loaded.predict(new.drop(columns="a"))


@pytest.mark.parametrize("remainder", ["drop", "passthrough", StandardScaler()], ids=str)
def test_columns_that_a_function_selects(remainder: Any, round_trip: Callable[..., Any]) -> None:
    numbers, X = frame()[["a", "b"]], frame(1)[["a", "b"]]
    columns = ColumnTransformer(
        [("n", StandardScaler(), make_column_selector(pattern="a")), ("none", "drop", ["a"])],
        remainder=remainder,
    )
    loaded = round_trip(fitted(make_pipeline(columns, clone(MKL)), numbers, classes(frame())), X)
    assert repr(loaded[0].transformers[0][2]) == "<not stored: make_column_selector>"
    assert loaded[0].get_feature_names_out().tolist() == (
        ["n__a"] if remainder == "drop" else ["n__a", "remainder__b"]
    )


@pytest.mark.parametrize(
    "model",
    [
        kw.MKLRegressor([RBF(), Linear()]),
        kw.MKLRegressorCV([RBF(), Linear()], Cs=2, cv=2),
        kw.GroupOMPRegressor([RBF(), Linear()], n_kernels=1),
        kw.EmpiricalBayesRegressor([RBF(), Linear()], max_iter=3),
        kw.GMKLRegressor(max_iter=2, tol=1.0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_family_and_scaled_targets(model: Any, tmp_path: Path) -> None:
    X, new = frame()[["a", "b"]], frame(1)[["a", "b"]]
    y = 100.0 + 50.0 * X["a"].to_numpy() ** 2
    scaled = TransformedTargetRegressor(clone(model), transformer=StandardScaler())
    for whole in (make_pipeline(StandardScaler(), scaled), TransformedTargetRegressor(clone(model))):
        fitted(whole, X, y)
        kw.save_model(whole, tmp_path / "model.kw")
        loaded = kw.load_model(tmp_path / "model.kw")
        np.testing.assert_array_equal(loaded.predict(new), whole.predict(new))


def test_text_of_pandas_and_a_global_setting(round_trip: Callable[..., Any]) -> None:
    """Frames between all steps; the setting is of the process, so the loaded model is asked under it too."""
    X, new = frame().astype({"colour": "category", "shape": "string"}), frame(1)
    columns = ColumnTransformer(
        [("w", OneHotEncoder(sparse_output=False), ["colour"])],
        remainder="drop",
        verbose_feature_names_out=False,
    )
    set_config(transform_output="pandas")
    try:
        round_trip(fitted(make_pipeline(columns, clone(MKL)), X, classes(frame())), new)
    finally:
        set_config(transform_output="default")


def test_a_loaded_pipeline_can_be_fitted_again(tmp_path: Path) -> None:
    X, y = frame()[["a", "b"]], classes(frame())
    model = fitted(
        Pipeline([("s", StandardScaler()), ("m", clone(MKL))], memory=str(tmp_path / "cache")), X, y
    )
    kw.save_model(model, tmp_path / "model.kw")
    loaded = kw.load_model(tmp_path / "model.kw")
    assert loaded.memory is None
    again = fitted(clone(loaded), X, y)
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X), rtol=1e-6)


# -- what is not stored -----------------------------------------------------------------------


class Own(TransformerMixin, BaseEstimator):
    def fit(self, X: Any, y: Any = None) -> Own:
        return self

    def transform(self, X: Any) -> Any:
        return X


class OwnScaler(StandardScaler):
    pass


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (FunctionTransformer(np.cbrt), "func cannot go into a model file"),
        (SelectKBest(lambda X, y: X[0], k=1), "score_func cannot go into a model file"),
        (Own(), "Own is neither a class of kernelweave nor"),
        (OwnScaler(), "OwnScaler is neither"),
    ],
)
def test_functions_and_other_classes_are_refused_when_saved(step: Any, words: str, tmp_path: Path) -> None:
    X, y = frame()[["a", "b"]].to_numpy(), classes(frame())
    model = fitted(make_pipeline(step, clone(MKL)), X, y)
    with pytest.raises(ModelFileError, match=words):
        kw.save_model(model, tmp_path / "model.kw")
    assert list(tmp_path.iterdir()) == []


def test_pipelines_that_end_in_something_else(tmp_path: Path) -> None:
    X, y = frame()[["a", "b"]], classes(frame())
    for model in (
        make_pipeline(StandardScaler(), LogisticRegression()),
        StandardScaler(),
        make_pipeline(PCA()),
    ):
        with pytest.raises(ModelFileError, match="pipelines that end in one"):
            kw.save_model(model.fit(X, y), tmp_path / "model.kw")


# -- hostile files ----------------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of a pipeline: columns (scaled, one-hot), then a model."""
    X = frame()
    columns = ColumnTransformer(
        [("n", StandardScaler(), ["a", "b"]), ("w", OneHotEncoder(sparse_output=False), ["colour"])]
    )
    kw.save_model(fitted(make_pipeline(columns, clone(MKL)), X, classes(X)), tmp_path / "model.kw")
    return tmp_path / "model.kw"


def find(value: Any, name: str) -> Any:
    """The last description of a class in a file, the fitted one."""
    objects = (node["object"] for node in nodes(value) if isinstance(node.get("object"), dict))
    return [described for described in objects if described.get("class") == f"sklearn:{name}"][-1]


def nodes(value: Any) -> Any:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from nodes(item)


def refused(path: Path) -> str:
    with pytest.raises(ModelFileError, match="cannot load") as caught:
        kw.load_model(path)
    return str(caught.value)


@pytest.mark.parametrize(
    "name",
    ["FunctionKernel", "os.system", "../x", "sklearn.preprocessing.StandardScaler", "sklearn:Birch", 3, None],
)
def test_names_that_are_not_in_the_list(name: Any, path: Path) -> None:
    rewrite(path, lambda head: find(head, "StandardScaler").__setitem__("class", name))
    assert "which is no class" in refused(path)


#: the class, parameters or state, the entry, and what it becomes
CHANGES: dict[str, tuple[str, str, str, Any]] = {
    "an unknown parameter": ("StandardScaler", "parameters", "system", 1),
    "a path": ("Pipeline", "parameters", "memory", "/tmp/x"),
    "a million processes": ("ColumnTransformer", "parameters", "n_jobs", 10**6),
    "no steps": ("Pipeline", "parameters", "steps", []),
    "steps that are none": ("Pipeline", "parameters", "steps", [["a", 1]]),
    "a step without a model": (
        "Pipeline",
        "parameters",
        "steps",
        [{"tuple": ["a", {"object": {"class": "sklearn:Normalizer", "parameters": {}, "state": {}}}]}],
    ),
    "a function": (
        "Pipeline",
        "parameters",
        "steps",
        [
            {
                "tuple": [
                    "a",
                    {
                        "object": {
                            "class": "sklearn:FunctionTransformer",
                            "parameters": {"func": {"function": "f_classif"}},
                            "state": {},
                        }
                    },
                ]
            }
        ],
    ),
    "an unknown function": ("StandardScaler", "parameters", "copy", {"function": "system"}),
    "an unknown type": ("OneHotEncoder", "parameters", "dtype", {"dtype": ["V8", True]}),
    "a method": ("StandardScaler", "state", "transform", 1),
    "a dunder": ("StandardScaler", "state", "__class__", 1),
    "a private attribute": ("StandardScaler", "state", "_secret", 1),
    "a number for an array": ("StandardScaler", "state", "mean_", 3.0),
    "a text for an array": ("StandardScaler", "state", "scale_", "abc"),
    "a list for an array": ("StandardScaler", "state", "var_", [1.0, 2.0]),
    "another width": ("StandardScaler", "state", "n_features_in_", 3),
    "a width that is none": ("StandardScaler", "state", "n_features_in_", "2"),
    "categories that are none": ("OneHotEncoder", "state", "categories_", [3]),
    "no list of categories": ("OneHotEncoder", "state", "categories_", 3),
    "more features than categories": ("OneHotEncoder", "state", "_n_features_outs", [10**9]),
    "fewer features than categories": ("OneHotEncoder", "state", "_n_features_outs", [1]),
    "a category dropped": ("OneHotEncoder", "state", "_drop_idx_after_grouping", [1]),
    "rare categories": ("OneHotEncoder", "state", "_infrequent_enabled", True),
    "features below none": ("OneHotEncoder", "state", "_n_features_outs", [-1]),
    "columns of nothing": ("ColumnTransformer", "state", "transformers_", 7),
    "columns that are no triples": ("ColumnTransformer", "state", "transformers_", [["a"]]),
}


@pytest.mark.parametrize("case", CHANGES)
def test_descriptions_that_make_no_sense(case: str, path: Path) -> None:
    name, part, entry, value = CHANGES[case]
    rewrite(path, lambda head: find(head, name)[part].__setitem__(entry, value))
    refused(path)


@pytest.mark.parametrize(
    ("name", "entry"),
    [("StandardScaler", "mean_"), ("OneHotEncoder", "categories_"), ("ColumnTransformer", "_columns")],
)
def test_attributes_that_are_missing(name: str, entry: str, path: Path) -> None:
    rewrite(path, lambda head: find(head, name)["state"].pop(entry))
    message = refused(path)
    assert name in message or "belong to nothing" in message


def test_an_unfitted_pipeline(path: Path) -> None:
    def change(head: Any) -> None:
        steps = find(head, "Pipeline")["parameters"]["steps"]
        steps[-1]["tuple"][1]["object"]["state"] = {}

    rewrite(path, change)
    refused(path)


def test_other_plain_values_end_in_an_error_at_prediction_or_in_none(path: Path) -> None:
    """Whatever plain value a fitted attribute has: an error when loaded, an error when used, or an answer."""
    _, head, _ = parts(path)
    values = [None, True, -1, 10**9, "x", [], [1], {"tuple": []}, {"dict": []}, {"float": "nan"}]
    raw, X = path.read_bytes(), frame(1)
    seen = 0
    for name in ("ColumnTransformer", "StandardScaler", "OneHotEncoder"):
        for entry in find(head, name)["state"]:
            for value in values:
                path.write_bytes(raw)
                rewrite(
                    path,
                    lambda head, at=(name, entry, value): find(head, at[0])["state"].update({at[1]: at[2]}),
                )
                try:
                    kw.load_model(path).predict(X)
                except (ValueError, TypeError, AttributeError, KeyError, IndexError):
                    seen += 1
    assert seen > 100


@pytest.mark.system
def test_a_file_of_many_transformers_is_cheap(path: Path) -> None:
    import tracemalloc

    scaler = {"object": {"class": "sklearn:OneHotEncoder", "parameters": {}, "state": {}}}
    rewrite(path, lambda head: find(head, "Pipeline")["parameters"]["steps"].insert(0, [scaler] * 20_000))
    tracemalloc.start()
    refused(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 48 * path.stat().st_size


def test_every_class_is_where_the_list_says() -> None:
    for name, (module, _) in CLASSES.items():
        assert class_of(name).__module__.startswith(module)
    assert json.dumps(sorted(CLASSES))
