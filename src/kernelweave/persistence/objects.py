"""Kernels, families, losses, regularisers, normalisations, estimators: a class, its parameters, its state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..estimators._group_omp import GreedyPath
from ..estimators._labels import Link
from ..gram import Predictor
from ..kernels import Precomputed, Views
from ..kernels.function import is_gp_kernel
from ..losses import Loss
from .classes import FUNCTIONS, find_class, key_of, parameters_of
from .codec import Form, ModelFileError, NotStored, Reader, Writer, entries, exactly, list_of, pair_of
from .pipelines import CLASSES, PRIVATE, REFUSED, fits_together, is_listed

#: parameters that only a new fit reads: plain values are stored, others are left out
FIT_ONLY = ("cv", "scoring", "random_state")

#: where a later fit would write: nothing that a file may say
PATHS = ("checkpoint",)


# -- writing ----------------------------------------------------------------------------------


def _write_object(obj: Any, writer: Writer) -> dict[str, Any]:
    """The state is written first: the parameters may refer to a matrix that it holds."""
    if type(obj) in FUNCTIONS:
        writer.refuse(f"{type(obj).__name__} holds a Python function", f"use {FUNCTIONS[type(obj)]}")
    key = key_of(obj)
    if key is None:
        writer.refuse(
            f"{type(obj).__name__} is neither a class of kernelweave nor a transformer that a file may name",
            "use a class of kernelweave, or Precomputed with the values of a kernel",
        )
    parameters = obj.get_params(deep=False)
    state = [name for name in vars(obj) if _is_state(type(obj), name) and name not in parameters]
    written = {name: writer.value(getattr(obj, name), f".{name}") for name in sorted(state)}
    stored = {name: _write_parameter(obj, name, value, writer) for name, value in parameters.items()}
    return {"class": key, "parameters": stored, "state": written}


def fitted_types(cls: type) -> dict[str, type]:
    """Attributes that predictions of an estimator read, and their types: what its classes declare."""
    if is_listed(cls):
        return dict.fromkeys(CLASSES[cls.__name__][1], object)
    declared = [vars(base).get("_fitted", {}) for base in reversed(cls.__mro__)]
    return {name: kind for own in declared for name, kind in own.items()}


def _is_state(cls: type, name: str) -> bool:
    """Private attributes that predictions read, and public ones of scikit-learn's convention."""
    private = name in fitted_types(cls) or (name in PRIVATE and is_listed(cls))
    return private or (name.endswith("_") and not name.startswith("_"))


def _write_parameter(obj: Any, name: str, value: Any, writer: Writer) -> Any:
    if name in _refused(type(obj)) and not callable(value):
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


def _refused(cls: type) -> tuple[str, ...]:
    """Parameters that no file sets."""
    return REFUSED if is_listed(cls) else PATHS


def _unused_matrix(value: Any, writer: Writer) -> NotStored | None:
    """What stands in for a Gram matrix whose kernel has no weight; None for anything else."""
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
    if any(values.get(name) is not None for name in _refused(cls)):
        raise ModelFileError("it names a path, a function or processes, which no model file does.")
    obj = cls(**values)
    for name, value in state.items():
        vars(obj)[name] = reader.value(value, *_types(cls, name))
    if key.startswith(("model:", "sklearn:")):
        _check_parts(obj, fitted=bool(state.keys() - {"_sklearn_output_config"}))
    return obj


def _types(cls: type, name: str) -> tuple[type, ...]:
    """The types that an attribute may have; attributes that no fit sets are refused."""
    fitted = name.isidentifier() and _is_state(cls, name) and name not in parameters_of(cls)
    if not fitted or hasattr(cls, name):
        raise ModelFileError(f"it sets {name!r:.40} on {cls.__name__}, which is not part of a fit.")
    kind = {"feature_names_in_": np.ndarray, **fitted_types(cls)}.get(name)
    return () if kind is None else (kind,)


def _check_parts(obj: Any, fitted: bool) -> None:
    """Refuse an estimator that lacks what predictions read, or whose parts do not fit together.

    Meta-estimators also hold estimators that were not fitted.
    """
    name = type(obj).__name__
    missing = [entry for entry in fitted_types(type(obj)) if fitted and entry not in vars(obj)]
    if missing:
        raise ModelFileError(f"it holds a {name} without {missing[0]}.")
    if not (fits_together(obj) if is_listed(type(obj)) else not fitted or obj._fits_together()):
        raise ModelFileError(f"it is damaged: the parts of its {name} do not fit together.")


def is_model(obj: Any) -> bool:
    """Whether an object is a model of kernelweave, alone or at the end of a pipeline."""
    while is_listed(type(obj)):
        steps = getattr(obj, "steps", None)
        obj = steps[-1][1] if steps else getattr(obj, "regressor_", None)
    return (key_of(obj) or "").startswith("model:")


# -- predictors -------------------------------------------------------------------------------

#: what a file says of a predictor, see `Predictor.state`; and of one whose samples may lack views, or whose
#: functions are sums of stages
FIELDS = (
    *("names", "n_samples", "rows", "columns", "parameters", "kernels", "batch", "terms", "alpha"),
    *("intercepts", "stages", "posterior", "posterior_rows", "link", "device", "ball"),
)
MORE = ("gaps", "shares")


def _write_predictor(predictor: Predictor, writer: Writer) -> dict[str, Any]:
    try:
        state = predictor.state()
    except ValueError as error:
        writer.refuse(str(error).rstrip("."), "fit with another engine")
    names, kernels = state["names"], state.pop("kernels")
    state = {name: value for name, value in state.items() if value is not None or name not in MORE}
    named = [[m, writer.value(kernel, f"kernel {names[m]!r}")] for m, kernel in kernels.items()]
    return {"kernels": named, **{name: writer.value(value, f".{name}") for name, value in state.items()}}


def _read_predictor(json: Any, reader: Reader) -> Predictor:
    """The predictor; it costs a multiple of the arrays it is made of, whoever else refers to them."""
    names = (*FIELDS, *(name for name in MORE if isinstance(json, dict) and name in json))
    state = {**dict.fromkeys(MORE), **dict(zip(names, entries(json, *names), strict=True))}
    kernels = dict(map(pair_of, list_of(state.pop("kernels"))))
    state = {name: reader.value(value) for name, value in state.items()}
    arrays = {id(array): array for array in _arrays(state)}
    reader.spend(8 * sum(array.nbytes for array in arrays.values()))
    if state["batch"] is not None:
        reader.spend(8 * int(np.prod(state["rows"].shape)))
    state["kernels"] = {m: reader.value(kernel) for m, kernel in kernels.items()}
    return Predictor.from_state(state)


def _arrays(value: Any) -> Iterator[np.ndarray]:
    """All arrays in lists, tuples, dicts and views."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict | list | tuple | Views):
        held = value.tables if isinstance(value, Views) else value
        for item in held.values() if isinstance(held, dict) else held:
            yield from _arrays(item)


def _write_link(link: Link, writer: Writer) -> dict[str, Any]:
    return {"name": link.name, "parameters": writer.value(link.parameters)}


def _read_link(json: Any, reader: Reader) -> Link:
    name, given = entries(json, "name", "parameters")
    kinds = {"sigmoid": np.ndarray, "softmax": float, "normal": type(None), "likelihood": Loss}
    if not isinstance(name, str) or name not in kinds:
        raise ModelFileError(f"it names the link {name!r:.40}, which does not exist.")
    parameters = reader.value(given, kinds[name])
    if name == "sigmoid" and (parameters.dtype.kind != "f" or parameters.shape[:1] != (2,)):
        raise ModelFileError("it is damaged: its link has no slope and shift.")
    if name == "likelihood" and not hasattr(parameters, "probability"):
        raise ModelFileError(f"it asks {type(parameters).__name__} for probabilities that it does not have.")
    return Link(name, parameters)


PATH_FIELDS = tuple(name for name in GreedyPath.__dataclass_fields__ if name != "groups")


def _write_path(path: GreedyPath, writer: Writer) -> dict[str, Any]:
    names = (*PATH_FIELDS, "groups") if path.groups else PATH_FIELDS
    return {name: writer.value(getattr(path, name), f".{name}") for name in names}


def _read_path(json: Any, reader: Reader) -> GreedyPath:
    names = (*PATH_FIELDS, "groups") if isinstance(json, dict) and "groups" in json else PATH_FIELDS
    values = {name: reader.value(value) for name, value in zip(names, entries(json, *names), strict=True)}
    groups = values.get("groups", [])
    fits = isinstance(groups, list) and all(isinstance(group, GreedyPath) for group in groups)
    if not fits or not isinstance(values["sets"], list) or type(values["n_selected"]) is not int:
        raise ModelFileError("it is damaged: its path of models makes no sense.")
    return GreedyPath(**values)


def _is_object(value: Any) -> bool:
    return isinstance(value, BaseEstimator) or is_gp_kernel(value)


OBJECTS = (
    Form("object", _is_object, _write_object, _read_object),
    Form("predictor", exactly(Predictor), _write_predictor, _read_predictor),
    Form("link", exactly(Link), _write_link, _read_link),
    Form("path", exactly(GreedyPath), _write_path, _read_path),
)
