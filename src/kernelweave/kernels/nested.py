"""Parameters of kernels inside lists and dicts, as ``kernels__0__gamma`` and ``kernels__name__gamma``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator


class NestedKernels(BaseEstimator):
    """Mixin that reaches the kernels in a list or dict by ``get_params`` and ``set_params``.

    An element without a name of its own is called by its position, a (name, kernel) pair, a (name, kernel,
    columns) triple or an entry of a dict by its name; several kernels under one name by both. As in
    scikit-learn's `Pipeline`, a parameter is set on the kernel itself, while a kernel that is replaced
    leaves the list or dict of the user as it was.
    """

    #: parameters that may hold a list or dict of kernels
    _nested: ClassVar[tuple[str, ...]] = ("kernels",)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; with `deep`, also the kernels in lists and dicts, and their parameters."""
        params = super().get_params(deep)
        for parameter in self._nested if deep else ():
            for name, kernel in _all_parts(params.get(parameter)):
                params[f"{parameter}__{name}"] = kernel
                if _has_params(kernel):
                    inner = kernel.get_params().items()
                    params.update({f"{parameter}__{name}__{key}": value for key, value in inner})
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters, such as ``C=1``, ``kernels__0=RBF()`` or ``kernels__0__gamma=0.1``."""
        known, others, nested = self.get_params(deep=False), {}, {}
        for key, value in params.items():
            parameter, _, path = key.partition("__")
            if key in known:  # without a look at the parameters of a thousand kernels
                setattr(self, key, value)
            elif parameter in known and parameter in self._nested:
                nested[key] = value
            else:
                others[key] = value
        super().set_params(**others)
        # a kernel is replaced before its parameters are set
        for key in sorted(nested, key=lambda key: key.count("__")):
            parameter, _, path = key.partition("__")
            given = getattr(self, parameter)
            if _is_container(given):
                setattr(self, parameter, _with(given, path, nested[key], self, parameter))
            elif _has_params(given):
                given.set_params(**{path: nested[key]})
            else:
                raise _unknown(path, given, self, parameter)
        return self


def _is_container(value: Any) -> bool:
    return isinstance(value, list | tuple | Mapping)


def _has_params(value: Any) -> bool:
    return hasattr(value, "get_params") and not isinstance(value, type)


def _is_named(element: Any) -> bool:
    """Whether an element of a list is a (name, kernel) pair or a (name, kernel, columns) triple."""
    return isinstance(element, tuple) and len(element) in (2, 3) and isinstance(element[0], str)


def _parts(spec: Any) -> Iterator[tuple[str, Any, Any]]:
    """Names in parameters, keys and values of the elements of a list or dict."""
    if isinstance(spec, Mapping):
        yield from ((str(key), key, value) for key, value in spec.items())
    else:
        for position, element in enumerate(spec):
            named = _is_named(element)
            yield (element[0], position, element[1]) if named else (str(position), position, element)


def _all_parts(spec: Any) -> Iterator[tuple[str, Any]]:
    """Names and values of all elements, those of inner lists after the list."""
    for name, _, value in _parts(spec) if _is_container(spec) else ():
        yield name, value
        yield from ((f"{name}__{inner}", part) for inner, part in _all_parts(value))


def _with(spec: Any, path: str, value: Any, owner: Any, parameter: str) -> Any:
    """`spec` with `value` at `path`: a new list or dict where an element is replaced, else `spec` itself."""
    fitting = [part for part in _parts(spec) if path == part[0] or path.startswith(f"{part[0]}__")]
    if not fitting:
        raise _unknown(path, spec, owner, parameter)
    name, key, old = max(fitting, key=lambda part: len(part[0]))  # names may hold "__" themselves
    rest = path[len(name) + 2 :]
    if not rest:
        new = value
    elif _is_container(old):
        new = _with(old, rest, value, owner, f"{parameter}__{name}")
    elif _has_params(old):
        new = old.set_params(**{rest: value})
    else:
        raise _unknown(rest, old, owner, f"{parameter}__{name}")
    return spec if new is old else _replaced(spec, key, new)


def _replaced(spec: Any, key: Any, new: Any) -> Any:
    """A copy of a list, tuple or dict with another kernel at `key`; a named element keeps its name."""
    if isinstance(spec, Mapping):
        return {**spec, key: new}
    elements = list(spec)
    named = _is_named(elements[key])
    elements[key] = (elements[key][0], new, *elements[key][2:]) if named else new
    return elements if isinstance(spec, list) else tuple(elements)


def _unknown(path: str, spec: Any, owner: Any, parameter: str) -> ValueError:
    """The error of a name that is not there, in scikit-learn's words."""
    name = f"{parameter}__{path}"
    if _is_container(spec):
        known = [f"{parameter}__{part[0]}" for part in _parts(spec)]
        return ValueError(
            f"Invalid parameter {name!r} for estimator {owner}. Valid parameters of {parameter} are: "
            f"{known!r}, and theirs."
        )
    return ValueError(
        f"Invalid parameter {name!r} for estimator {owner}. {parameter}={spec!r} has no parameters: pass a "
        "kernel object such as RBF(), or a list or dict of them."
    )
