"""Scikit-learn's pipelines and transformers around a model: which ones, and whether their parts fit together.

Files name classes by name alone; the module of each is stated here, and nothing else is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._container import DTYPES
from .codec import Form, ModelFileError, Reader, Writer, text

#: classes, their public modules, and what their predictions read
CLASSES: dict[str, tuple[str, tuple[str, ...]]] = {
    "Pipeline": ("sklearn.pipeline", ()),
    "FeatureUnion": ("sklearn.pipeline", ()),
    "ColumnTransformer": (
        "sklearn.compose",
        ("transformers_", "_columns", "_remainder", "_transformer_to_input_indices", "sparse_output_"),
    ),
    "TransformedTargetRegressor": ("sklearn.compose", ("regressor_", "transformer_", "_training_dim")),
    "StandardScaler": ("sklearn.preprocessing", ("mean_", "scale_")),
    "MinMaxScaler": ("sklearn.preprocessing", ("min_", "scale_", "data_min_", "data_max_")),
    "MaxAbsScaler": ("sklearn.preprocessing", ("scale_", "max_abs_")),
    "RobustScaler": ("sklearn.preprocessing", ("center_", "scale_")),
    "Normalizer": ("sklearn.preprocessing", ()),
    "PowerTransformer": ("sklearn.preprocessing", ("lambdas_",)),
    "QuantileTransformer": ("sklearn.preprocessing", ("quantiles_", "references_")),
    "OneHotEncoder": (
        "sklearn.preprocessing",
        ("categories_", "drop_idx_", "_drop_idx_after_grouping", "_infrequent_enabled", "_n_features_outs"),
    ),
    "OrdinalEncoder": ("sklearn.preprocessing", ("categories_",)),
    "FunctionTransformer": ("sklearn.preprocessing", ()),
    "SimpleImputer": ("sklearn.impute", ("statistics_", "indicator_", "_fill_dtype")),
    "MissingIndicator": ("sklearn.impute", ("features_", "_n_features")),
    "PCA": ("sklearn.decomposition", ("components_", "mean_", "explained_variance_")),
    "SelectKBest": ("sklearn.feature_selection", ("scores_",)),
    "VarianceThreshold": ("sklearn.feature_selection", ("variances_",)),
}

#: private attributes that belong to a fit
PRIVATE = {
    "_columns", "_default_to_infrequent_mappings", "_drop_idx_after_grouping", "_fill_dtype", "_fit_dtype",
    "_fit_svd_solver", "_infrequent_enabled", "_infrequent_indices", "_missing_indices", "_n_features",
    "_n_features_outs", "_name_to_fitted_passthrough", "_precomputed", "_remainder", "_scaler",
    "_sklearn_output_config", "_training_dim", "_transformer_to_input_indices",
}  # fmt: skip

#: numbers of one column each, and tables whose columns are those of the data
VECTORS = {
    "center_", "data_max_", "data_min_", "data_range_", "feature_names_in_", "lambdas_", "max_abs_", "mean_",
    "min_", "pvalues_", "scale_", "scores_", "statistics_", "var_", "variances_",
}  # fmt: skip
TABLES = {"components_", "quantiles_"}

#: parameters that are functions of the user's, say where a later fit would write, or start processes
REFUSED = ("func", "inverse_func", "kw_args", "inv_kw_args", "memory", "n_jobs")

#: functions of scikit-learn that parameters may name
FUNCTIONS = ("chi2", "f_classif", "f_regression", "mutual_info_classif", "mutual_info_regression")


def class_of(name: str) -> type:
    """The class of a name in the list."""
    found: type = getattr(import_module(CLASSES[name][0]), name)
    return found


def is_listed(cls: type) -> bool:
    """Whether a class is exactly one of those in the list."""
    named = cls.__name__ in CLASSES and cls.__module__.startswith("sklearn.")
    return named and class_of(cls.__name__) is cls


# -- whether parts fit together ---------------------------------------------------------------


def fits_together(obj: Any) -> bool:
    """Whether the arrays of a fitted transformer are as wide as its data, and its other parts are sound."""
    try:
        arrays = {name: value for name, value in vars(obj).items() if name in VECTORS | TABLES}
        return all(
            array is None or (array.shape[-1] == obj.n_features_in_ and array.ndim == 1 + (name in TABLES))
            for name, array in arrays.items()
        ) and CHECKS.get(type(obj).__name__, lambda obj: True)(obj)
    except (TypeError, ValueError, AttributeError):  # of other types than a fit leaves
        return False


def _is_step(name: Any, step: Any) -> bool:
    return isinstance(name, str) and (
        step in (None, "passthrough", "drop") or isinstance(step, BaseEstimator)
    )


def _is_pipeline(obj: Any) -> bool:
    steps = obj.steps if hasattr(obj, "steps") else obj.transformer_list
    return isinstance(steps, list) and len(steps) > 0 and all(_is_step(*step) for step in steps)


def _is_encoder(obj: Any) -> bool:
    """Whether categories have one axis and are sorted where they are numbers, which bisection requires."""
    known = getattr(obj, "categories_", [])
    numbers = [values for values in known if values.dtype.kind in "biuf"]
    plain = all(values.ndim == 1 and values.dtype.kind in "biufOUS" for values in known)
    rising = all(np.array_equal(np.sort(values), values, equal_nan=True) for values in numbers)
    return plain and rising and len(known) == getattr(obj, "n_features_in_", 0)


def _is_one_hot(obj: Any) -> bool:
    """Whether it has as many features as its categories make: compiled code writes to these places."""
    if not _is_encoder(obj):
        return False
    sizes = [len(values) for values in getattr(obj, "categories_", [])]
    if sizes and obj._infrequent_enabled:
        groups = zip(sizes, obj._infrequent_indices, obj._default_to_infrequent_mappings, strict=True)
        sizes = [_grouped(*group) for group in groups]
    dropped = getattr(obj, "_drop_idx_after_grouping", None)
    gone = [None] * len(sizes) if dropped is None else dropped.tolist()
    if not all(place is None or 0 <= place < size for place, size in zip(gone, sizes, strict=True)):
        return False
    left = [size - (place is not None) for place, size in zip(gone, sizes, strict=True)]
    return left == getattr(obj, "_n_features_outs", [])


def _grouped(size: int, rare: Any, mapping: Any) -> int:
    """How many of `size` categories are left when the rare ones become one; -1 where that makes no sense."""
    if rare is None and mapping is None:
        return size
    inside = rare.ndim == 1 and rare.size and 0 <= rare.min() and rare.max() < size
    fits = inside and mapping.shape == (size,) and mapping.dtype.kind == "i" and mapping.min() >= 0
    return int(mapping.max()) + 1 if fits else -1


def _is_column_transformer(obj: Any) -> bool:
    steps = [*obj.transformers, *getattr(obj, "transformers_", [])]
    return all(len(step) == 3 and _is_step(*step[:2]) for step in steps)


def _is_quantiles(obj: Any) -> bool:
    return not hasattr(obj, "quantiles_") or obj.references_.shape == (len(obj.quantiles_),)


CHECKS: dict[str, Callable[[Any], bool]] = {
    "Pipeline": _is_pipeline,
    "FeatureUnion": _is_pipeline,
    "ColumnTransformer": _is_column_transformer,
    "OneHotEncoder": _is_one_hot,
    "OrdinalEncoder": _is_encoder,
    "QuantileTransformer": _is_quantiles,
}


# -- functions and types, by name -------------------------------------------------------------


def _is_function(value: Any) -> bool:
    return getattr(value, "__name__", None) in FUNCTIONS and value is _function(value.__name__)


def _function(name: str) -> Any:
    return getattr(import_module("sklearn.feature_selection"), name)


def _read_function(json: Any, reader: Reader) -> Any:
    if text(json) not in FUNCTIONS:
        raise ModelFileError(f"it names the function {json!r:.40}, which no model file does.")
    return _function(json)


def _is_dtype(value: Any) -> bool:
    return isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic))


def _write_dtype(value: Any, writer: Writer) -> list[Any]:
    code = np.dtype(value).newbyteorder("<").str
    if code != "|O" and not DTYPES.fullmatch(code):
        writer.refuse(f"the type {value} is not one it can hold", "use numbers or text")
    return [code, isinstance(value, type)]


def _read_dtype(json: Any, reader: Reader) -> Any:
    code, is_class = json
    if text(code) != "|O" and not DTYPES.fullmatch(code):
        raise ModelFileError(f"it names the type {code!r:.40}, which no model file does.")
    return np.dtype(code).type if is_class is True else np.dtype(code)


PIPELINES = (
    Form("function", _is_function, lambda value, writer: value.__name__, _read_function),
    Form("dtype", _is_dtype, _write_dtype, _read_dtype),
)
