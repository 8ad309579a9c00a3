"""Scikit-learn's pipelines and transformers around a model: a class of a fixed list, parameters, state.

Files name classes by name alone; the module of each is stated here, and nothing else is imported.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._container import DTYPES
from .classes import key_of, parameters_of
from .codec import Form, Reader, Writer, entries, text
from .errors import ModelFileError, NotStored

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

#: functions of scikit-learn that parameters may name
FUNCTIONS = ("chi2", "f_classif", "f_regression", "mutual_info_classif", "mutual_info_regression")

#: parameters that are functions of the user's, say where a later fit would write, or start processes
REFUSED = ("func", "inverse_func", "kw_args", "inv_kw_args", "memory", "n_jobs")


def class_of(name: Any) -> type:
    """The class of a name in the list."""
    if not isinstance(name, str) or name not in CLASSES:
        raise ModelFileError(f"it names {name!r:.60}, which is no class that a model file may hold.")
    found: type = getattr(import_module(CLASSES[name][0]), name)
    return found


def is_listed(obj: Any) -> bool:
    """Whether an object is of exactly one of the classes in the list."""
    cls = type(obj)
    return cls.__name__ in CLASSES and cls.__module__.startswith("sklearn.") and class_of(cls.__name__) is cls


def is_model(obj: Any) -> bool:
    """Whether an object is a model of kernelweave, alone or at the end of a pipeline."""
    while is_listed(obj):
        steps = getattr(obj, "steps", None)
        obj = steps[-1][1] if steps else getattr(obj, "regressor_", None)
    return (key_of(obj) or "").startswith("model:")


# -- writing ----------------------------------------------------------------------------------


def _write(obj: Any, writer: Writer) -> dict[str, Any]:
    parameters = obj.get_params(deep=False)
    state = {name: value for name, value in vars(obj).items() if _is_state(name) and name not in parameters}
    return {
        "class": type(obj).__name__,
        "parameters": {name: _parameter(name, value, writer) for name, value in parameters.items()},
        "state": {name: writer.value(value, f".{name}") for name, value in sorted(state.items())},
    }


def _is_state(name: str) -> bool:
    return name in PRIVATE or (name.endswith("_") and not name.startswith("_"))


def _parameter(name: str, value: Any, writer: Writer) -> Any:
    if name == "memory" or (name in REFUSED and not callable(value)):
        value = None
    elif name == "random_state" and not isinstance(value, int | np.integer | NotStored | None):
        value = NotStored(type(value).__name__)
    elif name == "transformers":  # the fit has the columns that functions chose
        value = [(*step[:2], NotStored("columns") if callable(step[2]) else step[2]) for step in value]
    return writer.value(value, f".{name}")


# -- reading ----------------------------------------------------------------------------------


def _read(json: Any, reader: Reader) -> Any:
    name, parameters, state = entries(json, "class", "parameters", "state")
    cls = class_of(name)
    values = {key: reader.value(value) for key, value in parameters.items()}
    if not set(values) <= parameters_of(cls):
        raise ModelFileError(f"it gives {name} parameters that this version does not know.")
    if any(values.get(key) is not None for key in REFUSED):
        raise ModelFileError(f"it gives {name} a function, a path or processes, which no model file does.")
    obj = cls(**values)
    for key, value in state.items():
        if not _is_state(key) or key in values or hasattr(cls, key):
            raise ModelFileError(f"it sets {key!r:.40} on {name}, which is not part of a fit.")
        vars(obj)[key] = reader.value(value)
    try:
        fits = _fits(obj) and CHECKS.get(name, _anything)(obj)
    except (TypeError, ValueError, AttributeError):  # of other types than a fit leaves
        fits = False
    if not fits:
        raise ModelFileError(
            f"it is damaged, or of another scikit-learn: the parts of its {name} do not fit together."
        )
    return obj


def _fits(obj: Any) -> bool:
    """Whether a transformer was not fitted, or has what it needs, in arrays as wide as its data."""
    state = {name: value for name, value in vars(obj).items() if _is_state(name)}
    if not state.keys() - {"_sklearn_output_config"}:
        return True
    width = getattr(obj, "n_features_in_", None)
    arrays = {name: state[name] for name in VECTORS | TABLES if state.get(name) is not None}
    if any(array.shape[-1] != width or array.ndim != 1 + (name in TABLES) for name, array in arrays.items()):
        return False
    return all(name in state for name in CLASSES[type(obj).__name__][1])


def _anything(obj: Any) -> bool:
    return True


def _is_step(name: Any, step: Any) -> bool:
    return isinstance(name, str) and (
        step in (None, "passthrough", "drop") or isinstance(step, BaseEstimator)
    )


def _is_pipeline(obj: Any) -> bool:
    steps = obj.steps if hasattr(obj, "steps") else obj.transformer_list
    return isinstance(steps, list) and len(steps) > 0 and all(_is_step(*step) for step in steps)


def _is_encoder(obj: Any) -> bool:
    """Categories of one axis, sorted where they are numbers: they are found by bisection then."""
    known = getattr(obj, "categories_", [])
    numbers = [values for values in known if values.dtype.kind in "biuf"]
    plain = all(values.ndim == 1 and values.dtype.kind in "biufOUS" for values in known)
    rising = all(np.array_equal(np.sort(values), values, equal_nan=True) for values in numbers)
    return plain and rising and len(known) == getattr(obj, "n_features_in_", 0)


def _is_one_hot(obj: Any) -> bool:
    """As many features as its categories make: compiled code writes to the places that follow from them."""
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
    """Categories that are left of `size` when the rare ones are one; -1 where that makes no sense."""
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
    Form("sklearn", is_listed, _write, _read),
    Form("function", _is_function, lambda value, writer: value.__name__, _read_function),
    Form("dtype", _is_dtype, _write_dtype, _read_dtype),
)
