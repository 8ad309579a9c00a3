"""From Python values to JSON and arrays, and back, by forms.

Numbers, text, truth values, None and lists are JSON's own. Everything else is an object with one entry,
its kind and its content: ``{"tuple": [1, 2]}``, ``{"array": 3}``. A `Form` knows how one kind is written
and read, and reading makes only what a form makes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .._container import storable


class ModelFileError(ValueError):
    """A model cannot be stored, or a file holds no model that this version can read.

    Every damaged, truncated, hostile or newer file gives this error and no other. A path that
    does not exist or may not be read stays an `OSError`.

    Examples
    --------
    >>> issubclass(ModelFileError, ValueError)
    True
    """


@dataclass(frozen=True)
class NotStored:
    """Stands in a loaded model for a parameter that only a new fit would need and no file holds.

    Such are splitters, scorers, random generators, functions that select columns, and matrices of
    kernels with weight 0. The model predicts without them; before fitting again, set the parameter.

    Parameters
    ----------
    what : str
        What was left out.

    Examples
    --------
    >>> NotStored("RepeatedKFold")
    <not stored: RepeatedKFold>
    """

    what: str

    def __repr__(self) -> str:
        return f"<not stored: {self.what}>"


#: bytes that reading may take, or look at again, beyond the arrays of a file: so many times its size, and
#: some for the smallest
SHARE, SLACK = 32, 1 << 16

#: bytes of a number and of a text in a list
NUMBER, TEXT = 40, 64

#: keys of a dict with one hash: more of them make it slow on purpose (2^k x and x have the same as floats)
MOST_ALIKE = 64

#: numbers or strings of a list from which on they are stored as arrays
LONG = 32

JOBLIB = (
    "or store the model with joblib or pickle at your own risk: loading such a file executes what it holds"
)


class Form(NamedTuple):
    """How values of one kind are written and read.

    Attributes
    ----------
    kind : str
        Its name in the JSON.
    takes : callable
        Whether a value is written by this form.
    write : callable
        ``write(value, writer)`` returns JSON.
    read : callable
        ``read(json, reader)`` returns a value, or raises.
    """

    kind: str
    takes: Callable[[Any], bool]
    write: Callable[[Any, Writer], Any]
    read: Callable[[Any, Reader], Any]


def exactly(*types: type) -> Callable[[Any], bool]:
    """Instances of these types; a subclass may be something else."""
    return lambda value: type(value) in types


def instances(*types: type) -> Callable[[Any], bool]:
    """Instances of these types and of their subclasses."""
    return lambda value: isinstance(value, types)


class Writer:
    """Writes values; collects arrays, each once.

    Parameters
    ----------
    forms : sequence of Form
        The first that takes a value writes it.
    """

    def __init__(self, forms: tuple[Form, ...]) -> None:
        self.forms = forms
        self.arrays: list[np.ndarray] = []
        self._numbers: dict[int, int] = {}
        self._originals: list[Any] = []  # alive, so that no other array gets their id
        self._where: list[str] = []
        self.omit: Callable[[Any, Writer], NotStored | None] | None = None

    def value(self, value: Any, where: str = "") -> Any:
        """JSON of a value; `where` is its place, for error messages."""
        self._where.append(where)
        try:
            if value is None or type(value) in (bool, int, str):
                return value
            if type(value) is float and np.isfinite(value):
                return value
            if type(value) is list and len(value) <= LONG:
                return [self.value(item, f"[{i}]") for i, item in enumerate(value)]
            return self._form(value)
        finally:
            self._where.pop()

    def _form(self, value: Any) -> Any:
        if self.omit is not None:
            value = self.omit(value, self) or value
        for form in self.forms:
            if form.takes(value):
                return {form.kind: form.write(value, self)}
        if callable(value):
            name = getattr(value, "__qualname__", type(value).__name__)
            self.refuse(f"{name} is a Python function or class", "use an object of kernelweave")
        self.refuse(
            f"a {type(value).__name__} is not a value it can hold", "use plain numbers, text or arrays"
        )

    def known(self, array: Any) -> bool:
        """Whether an array was written already."""
        return id(array) in self._numbers

    def array(self, array: Any) -> int:
        """The number of an array."""
        if id(array) not in self._numbers:
            plain = np.asarray(array)
            if not storable(plain.dtype):
                self.refuse(
                    f"an array of {plain.dtype} is not a value it can hold", "use plain numbers or text"
                )
            self._numbers[id(array)] = len(self.arrays)
            self._originals.append(array)
            self.arrays.append(plain)
        return self._numbers[id(array)]

    def refuse(self, reason: str, instead: str) -> Any:
        """Give up: what cannot be stored, why, and what to do."""
        steps = [step for step in self._where if step]
        named = [i for i, step in enumerate(steps) if step[0] not in ".["]
        where = "".join(steps[named[-1] if named else 0 :]).lstrip(".") or "the model"
        raise ModelFileError(
            f"{where} cannot go into a model file, which holds arrays and JSON and no code: {reason}. "
            f"Instead, {instead}, {JOBLIB}."
        )


class Reader:
    """Reads values, at a cost that the size of the file bounds.

    Every reference to an array gives the same object. What is made of arrays (lists, strings, factors) is
    made once for all references, and counted: a small file that asks for much is refused.

    Parameters
    ----------
    forms : sequence of Form
    arrays : list of ndarray
    size : int, optional
        Bytes of the file; those of the arrays by default.
    """

    def __init__(self, forms: tuple[Form, ...], arrays: list[np.ndarray], size: int | None = None) -> None:
        self.forms = {form.kind: form for form in forms}
        self.arrays = arrays
        self.used = [False] * len(arrays)
        self.left = SHARE * (sum(array.nbytes for array in arrays) if size is None else size) + SLACK
        self._made: dict[Any, Any] = {}

    def spend(self, n_bytes: int) -> None:
        """Count bytes that a value takes, or that have to be looked at, beyond those of the file."""
        self.left -= int(n_bytes)
        if self.left < 0:
            raise ModelFileError("it asks for far more memory or work than a file of its size needs.")

    def once(self, key: tuple[Any, ...], n_bytes: int, make: Callable[[], Any]) -> Any:
        """What `make` builds from some arrays, the same object for every reference."""
        if key not in self._made:
            self.spend(n_bytes)
            self._made[key] = make()
        return self._made[key]

    def value(self, json: Any, *types: type) -> Any:
        """The value of a piece of JSON, of one of `types` if any are given."""
        value = self._any(json)
        if types and not isinstance(value, types):
            expected = " or ".join(cls.__name__ for cls in types)
            raise ModelFileError(f"it holds a {type(value).__name__} where a {expected} has to be.")
        return value

    def _any(self, json: Any) -> Any:
        if isinstance(json, list):
            return [self._any(item) for item in json]
        if isinstance(json, dict):
            if len(json) != 1 or next(iter(json)) not in self.forms:
                raise ModelFileError(f"it holds a value of an unknown kind, {sorted(json)!r:.60}.")
            ((kind, content),) = json.items()
            return self.forms[kind].read(content, self)
        if isinstance(json, float) and not np.isfinite(json):
            raise ModelFileError("it holds a number that is too large.")
        return json

    def array(self, number: Any, kinds: str = "", ndim: int | None = None) -> np.ndarray:
        """An array, of one of the `kinds` of types and with that many axes, if these are given."""
        if type(number) is not int or not 0 <= number < len(self.arrays):
            raise ModelFileError(f"it refers to array {number!r:.20}, and has {len(self.arrays)} of them.")
        array = self.arrays[number]
        if (kinds and array.dtype.kind not in kinds) or (ndim is not None and array.ndim != ndim):
            raise ModelFileError(
                f"it holds an array of {array.dtype} and shape {array.shape} in a wrong place."
            )
        self.used[number] = True
        return array


def entries(json: Any, *names: str) -> list[Any]:
    """The values of an object that has exactly these entries."""
    if not isinstance(json, dict) or set(json) != set(names):
        raise ModelFileError(f"it lacks one of {', '.join(names)}, or has more.")
    return [json[name] for name in names]


def _expected(json: Any, fits: bool, what: str) -> Any:
    """The JSON itself, if it is what it has to be."""
    if not fits:
        raise ModelFileError(f"it holds {json!r:.40} where {what} has to be.")
    return json


def text(json: Any) -> str:
    """JSON that is a string."""
    return str(_expected(json, isinstance(json, str), "text"))


def list_of(json: Any) -> list[Any]:
    """JSON that is a list."""
    found: list[Any] = _expected(json, isinstance(json, list), "a list")
    return found


def pair_of(json: Any) -> list[Any]:
    """JSON that is a list of two."""
    found: list[Any] = _expected(json, isinstance(json, list) and len(json) == 2, "a pair")
    return found


def count_of(json: Any) -> int:
    """JSON that is a number of things."""
    return int(_expected(json, type(json) is int and json >= 0, "a count"))
