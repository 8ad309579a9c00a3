"""Kernels made of kernels: sums, products, multiples; how their parameters are named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from itertools import product
from math import prod
from operator import add as plus
from operator import mul as times
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from .base import Kernel, _short, basis_of, positive, products_of
from .bases import Base, Zero
from .columns import Columns
from .convert import as_kernel
from .products import Constant


class NestedKernels(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
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
        params: dict[str, Any] = super().get_params(deep)
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


class Composite(Kernel):
    """A kernel that combines the values of other kernels on the same samples.

    Each child is fitted on the whole data and selects its own columns, so children may take
    different kinds of columns. Parameters of child i are reached as ``i__gamma``.

    Parameters
    ----------
    kernels : list of kernels

    Attributes
    ----------
    kernels_ : list of kernels
        The fitted children.
    """

    #: the operation on the values of two kernels
    _combine: ClassVar[staticmethod[[Any, Any], Any]]

    def __init__(self, kernels: Sequence[Any]) -> None:
        self.kernels = kernels

    @property
    def accepts(self) -> str:  # type: ignore[override]
        return common_accepts([as_kernel(kernel) for kernel in self.kernels])

    @property
    def counts_all_rows(self) -> bool:
        return any(as_kernel(kernel).counts_all_rows for kernel in self.kernels)

    def fit(self, X: Any, y: Any = None, sample_weight: np.ndarray | None = None) -> Self:
        """Fit a copy of every child on `X`."""
        if len(self.kernels) == 0:
            raise ValueError(f"{type(self).__name__}: kernels is empty, give at least one kernel.")
        children = [clone(as_kernel(kernel)) for kernel in self.kernels]
        self.kernels_ = [child.fit(X, sample_weight=sample_weight) for child in children]
        self.columns_ = None
        return self

    def with_columns(self, columns: Columns, override: bool = True) -> Kernel:
        return type(self)([as_kernel(kernel).with_columns(columns, override) for kernel in self.kernels])

    def in_view(self, X: Any, start: int) -> Kernel:
        return type(self)([as_kernel(kernel).in_view(X, start) for kernel in self.kernels])

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; with `deep`, also child i as ``i`` and its parameters as ``i__...``."""
        params: dict[str, Any] = {"kernels": self.kernels}
        for position, kernel in enumerate(self.kernels if deep else []):
            params[str(position)] = kernel
            if hasattr(kernel, "get_params"):
                params.update({f"{position}__{key}": value for key, value in kernel.get_params().items()})
        return params

    def set_params(self, **params: Any) -> Self:
        if "kernels" in params:
            self.kernels = params.pop("kernels")
        for key in [key for key in params if key.isdigit() and int(key) < len(self.kernels)]:
            kernels = list(self.kernels)
            kernels[int(key)] = params.pop(key)
            self.kernels = kernels
        result: Self = super().set_params(**params)
        return result

    def _view(self, X: Any) -> Any:
        return X

    def basis(self) -> tuple[Base | None, Kernel]:
        """The base of all fitted children that share one on the same columns, and who sees them."""
        parts = [basis_of(kernel) for kernel in self.kernels_]
        seen: list[tuple[Any, Any]] = [part for part in parts if part[0] != Zero()]
        if not seen:
            return Zero(), parts[0][1]
        first, seeing = seen[0]
        same = all(
            base == first
            and np.array_equal(kernel.base_columns, seeing.base_columns)
            and np.array_equal(kernel.base_scale, seeing.base_scale)
            for base, kernel in seen[1:]
        )
        return (first if same else None), seeing

    @property
    def base(self) -> Base | None:  # type: ignore[override]
        return self.basis()[0]

    @property
    def base_columns(self) -> np.ndarray | None:
        return self.basis()[1].base_columns

    @property
    def base_scale(self) -> np.ndarray | None:
        return self.basis()[1].base_scale

    def base_view(self, X: Any) -> Any:
        return self.basis()[1].base_view(X)

    def of_base(self, B: Any, xp: Any) -> Any:
        return reduce(self._combine, (kernel.of_base(B, xp) for kernel in self.kernels_))

    def _compute(self, X: Any, Z: Any) -> np.ndarray:
        if self.base is not None:
            A = self.base_view(X)
            result: np.ndarray = self.of_base(self.base.between(A, A if Z is X else self.base_view(Z)), np)
            return result
        other = None if Z is X else Z
        return reduce(self._combine, (kernel(X, other) for kernel in self.kernels_))

    def _diag(self, X: Any) -> np.ndarray:
        return reduce(self._combine, (kernel.diag(X) for kernel in self.kernels_))

    def _factors(self, X: Any, max_rank: int) -> list[np.ndarray] | None:
        """Factors of the children, or None if one has none."""
        parts: list[np.ndarray] = []
        for kernel in self.kernels_:
            part = kernel.low_rank(X, max_rank)
            if part is None:
                return None
            parts.append(part)
        return parts


class Sum(Composite):
    """Sum of kernels, k(x, z) = sum_i k_i(x, z); ``a + b + c`` makes one.

    Parameters
    ----------
    kernels : list of kernels

    Examples
    --------
    >>> from kernelweave.kernels import RBF, Linear
    >>> RBF(gamma=1.0) + Linear(columns=[0]) + 1.0
    Sum(kernels=[RBF(gamma=1.0), Linear(columns=[0]), Constant()])
    """

    name = "sum"
    _combine = staticmethod(plus)

    def _low_rank(self, X: Any, max_rank: int) -> np.ndarray | None:
        """The columns of all factors side by side."""
        parts = self._factors(X, max_rank)
        fits = parts is not None and sum(part.shape[1] for part in parts) <= max_rank
        return np.hstack(parts) if parts is not None and fits else None

    def affine(self, Z: Any, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        parts = [part for kernel in self.kernels_ if (part := kernel.affine(Z, coef)) is not None]
        if len(parts) < len(self.kernels_):
            return None
        return sum(W for W, _ in parts), sum(c for _, c in parts)

    def sum_of_products(self) -> list[tuple[float, list[Kernel]]]:
        return [term for kernel in self.kernels_ for term in products_of(kernel)]

    @property
    def label(self) -> str:
        return " + ".join(as_kernel(kernel).label for kernel in self.kernels)


class Product(Composite):
    """Product of kernels, k(x, z) = prod_i k_i(x, z); ``a * b * c`` makes one.

    Parameters
    ----------
    kernels : list of kernels

    Examples
    --------
    >>> from kernelweave.kernels import RBF, Linear
    >>> (RBF(gamma=1.0) * Linear()).label
    'RBF(gamma=1) * Linear'
    """

    name = "product"
    _combine = staticmethod(times)

    def _low_rank(self, X: Any, max_rank: int) -> np.ndarray | None:
        """All products of a column of each factor."""
        parts = self._factors(X, max_rank)
        if parts is None or prod(part.shape[1] for part in parts) > max_rank:
            return None
        return reduce(_row_products, parts)

    def sum_of_products(self) -> list[tuple[float, list[Kernel]]]:
        choices = product(*(products_of(kernel) for kernel in self.kernels_))
        return [(prod(c for c, _ in chosen), [k for _, own in chosen for k in own]) for chosen in choices]

    @property
    def label(self) -> str:
        return " * ".join(_factor_label(as_kernel(kernel)) for kernel in self.kernels)


class Scaled(Kernel):
    """A multiple of a kernel, factor * k(x, z); ``2.0 * kernel`` makes one.

    Parameters
    ----------
    kernel : kernel
    factor : float, default=1.0
        Must be non-negative.

    Attributes
    ----------
    kernel_ : kernel
        The fitted kernel.

    Examples
    --------
    >>> from kernelweave.kernels import Linear
    >>> (2.0 * Linear())([[1.0], [3.0]])
    array([[ 2.,  6.],
           [ 6., 18.]])
    """

    name = "scaled"

    def __init__(self, kernel: Any, factor: float = 1.0) -> None:
        self.kernel = kernel
        self.factor = factor

    @property
    def accepts(self) -> str:  # type: ignore[override]
        return as_kernel(self.kernel).accepts

    @property
    def counts_all_rows(self) -> bool:
        return as_kernel(self.kernel).counts_all_rows

    @property
    def label(self) -> str:
        return f"{_short(float(self.factor))} * {_factor_label(as_kernel(self.kernel))}"

    def fit(self, X: Any, y: Any = None, sample_weight: np.ndarray | None = None) -> Self:
        """Fit a copy of the kernel on `X`."""
        positive(self.factor, "factor", zero=True)
        self.kernel_ = clone(as_kernel(self.kernel)).fit(X, sample_weight=sample_weight)
        self.columns_ = None
        return self

    def with_columns(self, columns: Columns, override: bool = True) -> Kernel:
        return type(self)(as_kernel(self.kernel).with_columns(columns, override), self.factor)

    def in_view(self, X: Any, start: int) -> Kernel:
        return type(self)(as_kernel(self.kernel).in_view(X, start), self.factor)

    def _view(self, X: Any) -> Any:
        return X

    def basis(self) -> tuple[Base | None, Kernel]:
        return basis_of(self.kernel_)

    @property
    def base(self) -> Base | None:  # type: ignore[override]
        """That of the fitted kernel."""
        return self.basis()[0]

    @property
    def base_columns(self) -> np.ndarray | None:
        return self.basis()[1].base_columns

    @property
    def base_scale(self) -> np.ndarray | None:
        return self.basis()[1].base_scale

    def base_view(self, X: Any) -> Any:
        return self.basis()[1].base_view(X)

    def of_base(self, B: Any, xp: Any) -> Any:
        return self.kernel_.of_base(B, xp) * float(self.factor)

    def _compute(self, X: Any, Z: Any) -> np.ndarray:
        result: np.ndarray = self.kernel_(X, None if Z is X else Z) * float(self.factor)
        return result

    def _diag(self, X: Any) -> np.ndarray:
        result: np.ndarray = self.kernel_.diag(X) * float(self.factor)
        return result

    def sum_of_products(self) -> list[tuple[float, list[Kernel]]]:
        return [(float(self.factor) * factor, own) for factor, own in products_of(self.kernel_)]

    def affine(self, Z: Any, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        result: tuple[np.ndarray, np.ndarray] | None = self.kernel_.affine(Z, coef * float(self.factor))
        return result

    def _low_rank(self, X: Any, max_rank: int) -> np.ndarray | None:
        part = self.kernel_.low_rank(X, max_rank)
        return None if part is None else part * np.sqrt(float(self.factor))


def add(a: Any, b: Any) -> Kernel:
    """a + b as one kernel: sums flatten, a number c adds the constant kernel c (0 adds nothing)."""
    if _is_number(b):
        return a if b == 0 else add(a, Constant(positive(b, "the number added to a kernel", zero=True)))
    return Sum([*_operands(a, Sum), *_operands(b, Sum)])


def multiply(a: Any, b: Any) -> Kernel:
    """a * b as one kernel: products flatten, a number multiplies the values."""
    if not _is_number(b):
        return Product([*_operands(a, Product), *_operands(b, Product)])
    factor = positive(b, "the number multiplying a kernel", zero=True)
    return Scaled(a.kernel, a.factor * factor) if isinstance(a, Scaled) else Scaled(a, factor)


def common_accepts(kernels: Sequence[Kernel]) -> str:
    """What all `kernels` accept, or "mixed"."""
    kinds = {kernel.accepts for kernel in kernels} - {"any"}
    return "any" if not kinds else kinds.pop() if len(kinds) == 1 else "mixed"


def _operands(value: Any, kind: type[Composite]) -> list[Kernel]:
    return list(value.kernels) if isinstance(value, kind) else [as_kernel(value, "operand")]


def _row_products(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """All products of a column of A and a column of B."""
    result: np.ndarray = np.einsum("ia,ib->iab", A, B).reshape(len(A), -1)
    return result


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating)


def _factor_label(kernel: Kernel) -> str:
    return f"({kernel.label})" if isinstance(kernel, Sum) else kernel.label
