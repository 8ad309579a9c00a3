"""Kernels, families, losses, regularisers, normalisations, estimators: a class, its parameters, its state."""

from __future__ import annotations

from types import MethodType
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..estimators._base import renamed_state
from ..estimators._greedy_path import GreedyPath
from ..estimators._process import Process
from ..estimators._stages import StagedExpansion
from ..estimators.classifier import Link, sigmoid_link, softmax_link
from ..gram.dictionary import Expansion
from ..kernels import Precomputed
from ..kernels.gp import is_gp_kernel
from ..losses import Loss
from .checks import check_fitted
from .classes import FUNCTIONS, find_class, key_of, parameters_of
from .codec import Form, Reader, Writer, entries, exactly, text
from .errors import ModelFileError, NotStored

#: what predictions of an estimator read beside its parameters and public attributes, and of which type it is
STATE: dict[str, tuple[type, ...]] = {
    "_expansion": (Expansion, StagedExpansion),
    "_process": (Process,),
    "_link": (Link,),
    "_likelihood": (MethodType, type(None)),
    "_temperature": (float,),
    "_intercepts": (np.ndarray,),
    "_noises": (np.ndarray,),
    "_numeric": (bool,),
    "_pairwise": (bool,),
    "_flat": (bool,),
    "_selects": (bool,),
    "_support_rows": (np.ndarray,),
    "_alphas": (list,),
    "_weights": (np.ndarray,),
    "_mask": (np.ndarray,),
    "_features": (np.ndarray,),
}

#: types of public attributes that predictions rely on
PUBLIC: dict[str, tuple[type, ...]] = {
    "classes_": (np.ndarray,),
    "weights_": (np.ndarray,),
    "kernel_names_": (list,),
    "n_features_in_": (int,),
    "feature_names_in_": (np.ndarray,),
    "path_": (GreedyPath,),
    "best_estimator_": (BaseEstimator,),
}

#: parameters that only a new fit reads: plain values are stored, others are left out
FIT_ONLY = ("cv", "scoring", "random_state")

#: where a later fit would write: nothing that a file may say
PATHS = ("checkpoint",)

LINKS: dict[str, Any] = {"sigmoid": sigmoid_link, "softmax": softmax_link}


# -- writing ----------------------------------------------------------------------------------


def _write_object(obj: Any, writer: Writer) -> dict[str, Any]:
    """The state first: a matrix that it holds is one of those that the parameters may name."""
    if type(obj) in FUNCTIONS:
        writer.refuse(f"{type(obj).__name__} holds a Python function", f"use {FUNCTIONS[type(obj)]}")
    key = key_of(obj)
    if key is None:
        writer.refuse(
            f"{type(obj).__name__} is neither a class of kernelweave nor a transformer that a file may name",
            "use a class of kernelweave, or Precomputed with the values of a kernel",
        )
    parameters = obj.get_params(deep=False)
    state = {name: value for name, value in vars(obj).items() if _is_state(name) and name not in parameters}
    written = {name: writer.value(value, f".{name}") for name, value in sorted(state.items())}
    stored = {name: _write_parameter(obj, name, value, writer) for name, value in parameters.items()}
    return {"class": key, "parameters": stored, "state": written}


def _is_state(name: str) -> bool:
    """Private attributes that predictions read, and public ones of scikit-learn's convention."""
    return name in STATE or (name.endswith("_") and not name.startswith("_"))


def _write_parameter(obj: Any, name: str, value: Any, writer: Writer) -> Any:
    if name in PATHS:
        value = None
    elif name in FIT_ONLY and not _is_plain(value) and not isinstance(value, NotStored):
        value = NotStored(type(value).__name__)
    elif name == "columns" and callable(value):
        # fitted kernels have the positions it chose
        chosen = getattr(obj, "columns_", None)
        value = NotStored("a function that selects columns") if chosen is None else chosen
    if name != "kernels":
        return writer.value(value, f".{name}")
    before, writer.omit = writer.omit, _unused_matrix
    try:
        return writer.value(value, f".{name}")
    finally:
        writer.omit = before


def _unused_matrix(value: Any, writer: Writer) -> NotStored | None:
    """What stands for a Gram matrix that no kernel with weight has; None for anything else."""
    matrix = value.matrix if isinstance(value, Precomputed) else value
    if not isinstance(matrix, np.ndarray) or matrix.ndim != 2 or writer.known(matrix):
        return None
    return NotStored(f"Precomputed({matrix.shape[0]} x {matrix.shape[1]})")


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str | np.integer | np.floating)


# -- reading ----------------------------------------------------------------------------------


def _read_object(json: Any, reader: Reader) -> Any:
    key, parameters, state = entries(json, "class", "parameters", "state")
    cls = find_class(key)
    values = {name: reader.value(value) for name, value in parameters.items()}
    if not set(values) <= parameters_of(cls):
        raise ModelFileError(f"it gives {cls.__name__} parameters that this version does not know.")
    if any(values.get(name) is not None for name in PATHS):
        raise ModelFileError("it names a path, which no model file does.")
    obj = cls(**values)
    for name, value in renamed_state(state).items():
        vars(obj)[name] = reader.value(value, *_types(cls, name))
    if key.startswith("model:") and state:  # a meta-estimator holds one that was not fitted, too
        check_fitted(obj)
    return obj


def _types(cls: type, name: str) -> tuple[type, ...]:
    """The types that an attribute may have; attributes that are not a fit's are refused."""
    fitted = name.isidentifier() and _is_state(name) and name not in parameters_of(cls)
    if not fitted or hasattr(cls, name):
        raise ModelFileError(f"it sets {name!r:.40} on {cls.__name__}, which is not part of a fit.")
    return STATE.get(name) or PUBLIC.get(name, ())


# -- functions, by name -----------------------------------------------------------------------


def _write_link(link: Link, writer: Writer) -> dict[str, Any]:
    names = [name for name, function in LINKS.items() if function is link.function]
    function = {"name": names[0]} if names else writer.value(link.function)
    return {"function": function, "parameters": writer.value(link.parameters)}


def _read_link(json: Any, reader: Reader) -> Link:
    function, parameters = entries(json, "function", "parameters")
    values = reader.value(parameters, np.ndarray, float, type(None))
    if isinstance(function, dict) and set(function) == {"name"}:
        if function["name"] not in LINKS:
            raise ModelFileError(f"it names the link {function['name']!r:.40}, which there is not.")
        return Link(LINKS[function["name"]], values)
    return Link(reader.value(function, MethodType), values)


def _is_probability(value: Any) -> bool:
    return (
        isinstance(value, MethodType) and isinstance(value.__self__, Loss) and value.__name__ == "probability"
    )


def _write_probability(method: Any, writer: Writer) -> Any:
    return writer.value(method.__self__)


def _read_probability(json: Any, reader: Reader) -> Any:
    loss = reader.value(json, Loss)
    if not hasattr(loss, "probability"):
        raise ModelFileError(f"it asks {type(loss).__name__} for probabilities, which it does not have.")
    return loss.probability


PATH_FIELDS = tuple(GreedyPath.__dataclass_fields__)


def _write_path(path: GreedyPath, writer: Writer) -> dict[str, Any]:
    return {name: writer.value(getattr(path, name), f".{name}") for name in PATH_FIELDS}


def _read_path(json: Any, reader: Reader) -> GreedyPath:
    values = {
        name: reader.value(value)
        for name, value in zip(PATH_FIELDS, entries(json, *PATH_FIELDS), strict=True)
    }
    if not isinstance(values["sets"], list) or type(values["n_selected"]) is not int:
        raise ModelFileError("it is damaged: its path of models makes no sense.")
    return GreedyPath(**values)


def _is_selector(value: Any) -> bool:
    """Whether a value is what `sklearn.compose.make_column_selector` makes."""
    cls = type(value)
    return cls.__name__ == "make_column_selector" and cls.__module__.startswith("sklearn.")


def _write_selector(value: Any, writer: Writer) -> str:
    return "make_column_selector"


def _read_absent(json: Any, reader: Reader) -> NotStored:
    return NotStored(text(json))


def _is_object(value: Any) -> bool:
    return isinstance(value, BaseEstimator) or is_gp_kernel(value)


OBJECTS = (
    Form("object", _is_object, _write_object, _read_object),
    Form("link", exactly(Link), _write_link, _read_link),
    Form("probability", _is_probability, _write_probability, _read_probability),
    Form("not_stored", _is_selector, _write_selector, _read_absent),
    Form("path", exactly(GreedyPath), _write_path, _read_path),
)
