"""What every kernel is: parameters, columns, ``fit`` on training rows, a Gram block on call."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, clone

from .bases import Base
from .columns import Columns, as_table, is_views, resolve_columns, take_columns, take_rows
from .faults import not_finite_error, refuse_dates, unusable_error

#: values of larger size have no squares to sum
LARGEST = 1e150


class Kernel(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Base class of kernels: a positive semidefinite function k(x, z) of two samples.

    A subclass stores its parameters in ``__init__`` (`columns` among them) and either declares its
    `base` and writes ``of_base(B, xp)``, or, where it is a function of no such quantity, writes
    ``_compute(X, Z)``. With a base it shares distances or inner products with all kernels on the same
    columns, and runs on every device. It may write ``_diag(X)`` when the diagonal is cheaper than a Gram
    matrix, ``_low_rank(X, max_rank)`` when K = Phi Phi' with few columns, and
    ``_fit(X, sample_weight)`` when parameters are taken from the training rows.
    All of them receive only the selected columns.

    Attributes
    ----------
    columns_ : ndarray of int or None
        Positions of the columns the kernel sees.
    column_scale_ : ndarray
        What these columns are multiplied by; only for kernels with ``standardize=True``.

    Examples
    --------
    >>> from kernelweave.kernels.bases import SquaredEuclidean
    >>> class Cauchy(Kernel):
    ...     '''k(x, z) = 1 / (1 + ||x - z||^2).'''
    ...
    ...     base = SquaredEuclidean()
    ...
    ...     def of_base(self, B, xp):
    ...         return 1.0 / (1.0 + B)
    >>> Cauchy()(np.array([[0.0], [1.0]]))
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    #: the quantity of two samples of which the kernel is a function (see `kernels.bases`), if there is one
    base: Base | None = None

    #: what the selected columns must hold: "numeric", "string", "index", "any", or, for a
    #: combination of kernels that differ in it, "mixed"
    accepts: str = "numeric"

    #: the registry name of the class
    name: str = ""

    #: the parameter that sets the width, for kernels that have one ("gamma", "length_scale")
    bandwidth: str | None = None

    columns: Columns = None

    #: whether columns are brought to one unit first (see `column_scale`), for kernels with such a parameter
    standardize: bool = False

    # NumPy scalars and arrays leave `2.0 * kernel` and `K + kernel` to the kernel
    __array_ufunc__ = None

    def fit(self, X: Any, y: Any = None, sample_weight: np.ndarray | None = None) -> Self:
        """Resolve the columns and take data-dependent parameters from the training rows.

        A row of weight w counts as w equal rows, so weighting and repeating rows agree; only the rule
        "scale", which is scikit-learn's, counts every row once.
        """
        X = as_table(X)
        self.columns_ = resolve_columns(self.columns, X)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        self.__dict__.pop("column_scale_", None)
        if self.standardize:
            self.column_scale_ = column_scale(self._view(X), weight)
        if not self.counts_all_rows:
            X, weight = counted_rows(X, weight)
        self._fit(self._view(X), weight)
        return self

    @property
    def counts_all_rows(self) -> bool:
        """Whether rows of weight 0 matter to `fit`: to the rule "scale" alone they do."""
        return self.bandwidth is not None and getattr(self, self.bandwidth, None) == "scale"

    def __call__(self, X: Any, Z: Any = None) -> np.ndarray:
        """Gram block k(x_i, z_j); `Z=None` means `X` itself.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_x, n_features)
        Z : same, of shape (n_z, n_features), optional

        Returns
        -------
        K : ndarray of shape (n_x, n_z)
        """
        X = as_table(X)
        kernel = self._fitted_on(X)
        A = kernel._view(X)
        return kernel._compute(A, A if Z is None else kernel._view(as_table(Z)))

    def diag(self, X: Any) -> np.ndarray:
        """The values k(x_i, x_i), without the rest of the Gram matrix."""
        X = as_table(X)
        kernel = self._fitted_on(X)
        return kernel._diag(kernel._view(X))

    def low_rank(self, X: Any, max_rank: int | None = None) -> np.ndarray | None:
        """Phi of shape (n, r) with K = Phi Phi', for kernels that have an exact one of low rank.

        None where every such Phi has more than `max_rank` columns (by default n - 1): then the Gram matrix
        is the cheaper form. For a fitted kernel, Phi of new samples and Phi of training samples match.

        Examples
        --------
        >>> from kernelweave.kernels import RBF, Linear
        >>> X = np.array([[1.0, 2.0], [0.0, 3.0], [1.0, 1.0]])
        >>> Linear(columns=[1]).low_rank(X).ravel()
        array([2., 3., 1.])
        >>> RBF().low_rank(X) is None
        True
        """
        X = as_table(X)
        kernel = self._fitted_on(X)
        return kernel._low_rank(kernel._view(X), X.shape[0] - 1 if max_rank is None else max_rank)

    def affine(self, Z: Any, coef: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """W and c with k(x, Z) coef = x'W + c for every x, for fitted kernels that are linear; else None.

        Parameters
        ----------
        Z : table of shape (n, n_features)
        coef : ndarray of shape (n, J)

        Returns
        -------
        W : ndarray of shape (n_features, J)
        c : ndarray of shape (J,)

        Examples
        --------
        >>> from kernelweave.kernels import Linear
        >>> Z = np.array([[1.0, 2.0], [0.0, 3.0]])
        >>> W, c = (2.0 * Linear(columns=[1]) + 1.0).fit(Z).affine(Z, np.array([[1.0], [1.0]]))
        >>> W.ravel(), c
        (array([ 0., 10.]), array([2.]))
        """
        return None

    def with_columns(self, columns: Columns, override: bool = True) -> Kernel:
        """The same kernel on other columns, unfitted; `override=False` keeps columns already chosen."""
        if self.columns is not None and not override:
            return self
        return type(self)(**{**self.get_params(deep=False), "columns": columns})

    def in_view(self, X: Any, start: int) -> Kernel:
        """The same kernel, unfitted, on a table in which the columns of X start at `start`."""
        chosen = resolve_columns(self.columns, X)
        whole = slice(start, start + X.shape[1])
        return self.with_columns(whole if chosen is None else (start + chosen).tolist())

    def __add__(self, other: Any) -> Kernel:
        from .compose import add

        return add(self, other)

    def __mul__(self, other: Any) -> Kernel:
        from .compose import multiply

        return multiply(self, other)

    __radd__ = __add__
    __rmul__ = __mul__

    @property
    def label(self) -> str:
        """Short name for tables and plots, such as ``RBF(gamma=0.1)``.

        It shows the first parameter and the others that differ from their defaults.
        """
        shown = [
            f"{p.name}={_short(getattr(self, p.name))}"
            for k, p in enumerate(inspect.signature(type(self)).parameters.values())
            if p.name != "columns" and (k == 0 or getattr(self, p.name) != p.default)
        ]
        return type(self).__name__ + (f"({', '.join(shown)})" if shown else "") + _columns_label(self.columns)

    def _fitted_on(self, X: Any) -> Kernel:
        """The kernel itself once fitted; before that, a copy fitted on `X`."""
        return self if hasattr(self, "columns_") else clone(self).fit(X)

    def _view(self, X: Any) -> Any:
        values = as_numeric(take_columns(X, self.columns_), self.columns_)
        scale = getattr(self, "column_scale_", None)
        return values if scale is None else scaled_columns(values, scale)

    def _fit(self, X: Any, sample_weight: np.ndarray | None) -> None:
        """Take parameters from the training rows; nothing by default."""

    def basis(self) -> tuple[Base | None, Kernel]:
        """The base of the fitted kernel, and which kernel sees its columns: itself, or one it is made of."""
        return self.base, self

    def of_base(self, B: Any, xp: Any) -> Any:
        """k from the values B of its `base`, by operations of `xp`, the module of B: numpy or torch.

        B is not changed; it may be returned as it is.
        """
        raise NotImplementedError(f"{type(self).__name__} has neither `of_base` nor `_compute`: write one.")

    def form(self) -> tuple[Any, ...] | None:
        """What compiled loops need to know of `of_base`, or None.

        ("exp", r, c_1, c_2) for k = exp(r b) (1 + c_1 b + c_2 b^2) with r <= 0, of which c_1 and c_2 may be
        left out; ("power", g, c, p) for k = (g b + c)^p with a positive integer p.
        """
        return None

    def sum_of_products(self) -> list[tuple[float, list[Kernel]]]:
        """The fitted kernel as sum_t factor_t prod_s k_ts: factors, and fitted kernels to multiply.

        Examples
        --------
        >>> from kernelweave.kernels import RBF, Linear
        >>> ((RBF(1.0) + 2.0) * Linear()).fit(np.eye(2)).sum_of_products()
        [(1.0, [RBF(gamma=1.0), Linear()]), (2.0, [Linear()])]
        """
        return [(1.0, [self])]

    def windows(self) -> tuple[np.ndarray, np.ndarray | None] | None:
        """What a kernel of strings weighs, where it adds up equal substrings; else None.

        (b, c) for k(x, z) = sum_d b_d sum_l sum_s c_|s| [x and z are equal on d places from l + s and l on];
        None in place of c for c = 1 whatever the shift s. b starts with b_0, which counts for nothing.
        """
        return None

    @property
    def base_columns(self) -> np.ndarray | None:
        """Positions of the columns that the `base` of a fitted kernel sees; None: all."""
        return self.columns_

    @property
    def base_scale(self) -> np.ndarray | None:
        """What these columns are multiplied by before the `base` sees them; None: nothing."""
        return getattr(self, "column_scale_", None)

    def base_view(self, X: Any) -> Any:
        """The values of a table that the `base` of a fitted kernel sees."""
        return self._view(X)

    def _compute(self, X: Any, Z: Any) -> np.ndarray:
        """Gram block on the selected columns."""
        result: np.ndarray = self.of_base(None if self.base is None else self.base.between(X, Z), np)
        return result

    def _low_rank(self, X: Any, max_rank: int) -> np.ndarray | None:
        """Phi on the selected columns, or None; None by default."""
        return None

    def _diag(self, X: Any) -> np.ndarray:
        base = base_of(self)
        if base is not None:
            result: np.ndarray = self.of_base(base.diag(X), np)
            return result
        singles = (X[i : i + 1] for i in range(X.shape[0]))
        return np.array([self._compute(single, single)[0, 0] for single in singles])


def base_of(kernel: Kernel) -> Base | None:
    """The base of a fitted kernel; None where a subclass computes its values in a way of its own."""
    return basis_of(kernel)[0]


def basis_of(kernel: Kernel) -> tuple[Base | None, Kernel]:
    """The base of a fitted kernel, and the innermost kernel that computes it; every kernel is asked once."""
    return kernel.basis() if _at_least_as_new(type(kernel), "of_base", "_compute") else (None, kernel)


def form_of(kernel: Kernel) -> tuple[Any, ...] | None:
    """The form of a fitted kernel with a base; None where a subclass has changed `of_base` since."""
    return kernel.form() if _at_least_as_new(type(kernel), "form", "of_base") else None


def products_of(kernel: Kernel) -> list[tuple[float, list[Kernel]]]:
    """The sum of products of a fitted kernel; itself where a subclass computes values in a way of its own."""
    known = _at_least_as_new(type(kernel), "sum_of_products", "_compute")
    return kernel.sum_of_products() if known else [(1.0, [kernel])]


def windows_of(kernel: Kernel) -> tuple[np.ndarray, np.ndarray | None] | None:
    """The windows of a kernel of strings; None where a subclass has changed `_compute` since."""
    return kernel.windows() if _at_least_as_new(type(kernel), "windows", "_compute") else None


def _at_least_as_new(kind: type, name: str, other: str) -> bool:
    """Whether a method is written in the class that writes another one, or in a subclass of that."""
    ages = [next(k for k, cls in enumerate(kind.__mro__) if method in vars(cls)) for method in (name, other)]
    return ages[0] <= ages[1]


def counted_rows(X: Any, weight: np.ndarray | None) -> tuple[Any, np.ndarray | None]:
    """The rows of positive weight, and their weights: the others may hold anything."""
    if weight is None or weight.all():
        return X, weight
    rows = np.flatnonzero(weight)
    return take_rows(X, rows), weight[rows]


#: a table with a smaller share of values that are not zero holds counts or codes, such as words
FEW_VALUES = 0.1


def column_scale(X: Any, weight: np.ndarray | None = None) -> np.ndarray:
    """1 / standard deviation of every column over the rows, and 0 for a column that is constant.

    In a table in which nine values in ten are zero, columns hold counts or codes of rare things (words,
    categories). The deviation of such a column says how rare the thing is, and is not a unit: columns that
    are mostly zero share one unit, the root mean square of their values that are not zero.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, n_columns)
    weight : ndarray of shape (n,), optional
        A row of weight w counts as w rows.

    Examples
    --------
    >>> column_scale(np.array([[1.0, 500.0, 7.0], [3.0, 900.0, 7.0]]))
    array([1.   , 0.005, 0.   ])
    """
    weight = np.ones(X.shape[0]) if weight is None else weight
    share = weight / weight.sum()
    mean = np.asarray(share @ X, dtype=np.float64)
    if sparse.issparse(X):
        there = np.asarray(share @ (X != 0).astype(np.float64))
        square = np.asarray(share @ X.multiply(X).astype(np.float64))
        variance = np.maximum(square - mean**2, 0.0)
    else:
        there = share @ (X != 0).astype(np.float64)
        variance = share @ np.square(np.subtract(X, mean, dtype=np.float64))
        square = variance + mean**2
    varies = variance > 1e-14 * square
    rare = (there < 0.5) & varies
    if rare.any() and there.mean() < FEW_VALUES:
        variance = np.where(rare, square[rare].sum() / there[rare].sum(), variance)
    return np.divide(1.0, np.sqrt(variance), out=np.zeros(len(mean)), where=varies)


def scaled_columns(X: Any, scale: np.ndarray) -> Any:
    """Columns of an array or CSR matrix times numbers, in its precision."""
    scale = scale.astype(X.dtype, copy=False)
    if not sparse.issparse(X):
        return X * scale
    scaled = X.copy()
    scaled.data = X.data * scale[X.indices]
    return scaled


def as_numeric(X: Any, positions: Any = None) -> Any:
    """Float array or CSR matrix with the values of `X`; float32 stays float32.

    `positions` are those of the columns in the user's table, which errors name.
    """
    if sparse.issparse(X):
        X = X.tocsr() if X.dtype.kind == "f" else X.tocsr().astype(np.float64)
        _check_range(X.data, X, positions)
        return X
    refuse_dates(X, positions)
    values = np.asarray(X)
    if values.ndim == 1:
        X = values = values[:, None]
    try:
        numbers = values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise unusable_error(X, positions) or error from error
    _check_range(numbers, X, positions)
    return numbers


def in_double(X: Any) -> Any:
    """`X` with values of single precision in double: kernels compute in the precision of their data.

    A table that is read in pieces is left as it is; of views, each table is treated separately.

    Examples
    --------
    >>> in_double(np.zeros(2, dtype=np.float32)).dtype
    dtype('float64')
    """
    if is_views(X):
        return X.map(lambda _, table: in_double(table))
    if hasattr(X, "iloc"):
        narrow = [k for k, dtype in enumerate(getattr(X, "dtypes", ())) if _narrow(dtype)]
        X = X.copy(deep=False) if narrow else X
        for k in narrow:
            X.isetitem(k, X.iloc[:, k].astype(np.float64))
        return X
    return X.astype(np.float64) if _narrow(getattr(X, "dtype", None)) and hasattr(X, "astype") else X


def _narrow(dtype: Any) -> bool:
    return isinstance(dtype, np.dtype) and dtype.kind == "f" and dtype.itemsize < 8


#: arrays that were found finite, while many kernels are fitted on them
_KNOWN: ContextVar[Sequence[Any]] = ContextVar("known_finite", default=())


@contextmanager
def known_finite(values: Sequence[Any]) -> Iterator[None]:
    """Let kernels take these arrays as they are: looking for NaN once in a large table is enough."""
    token = _KNOWN.set(values)
    try:
        yield
    finally:
        _KNOWN.reset(token)


def _check_range(values: np.ndarray, X: Any, positions: Any) -> None:
    """Refuse values of the table `X` that are not finite, or whose squares are not."""
    if any(values is known for known in _KNOWN.get()):
        return
    largest = largest_size(values)
    if not np.isfinite(largest):
        raise not_finite_error(X, positions) or ValueError("Input X contains NaN or infinity.")
    if largest > LARGEST:
        raise ValueError(
            f"X has values up to {largest:.2g} in the columns of a numeric kernel, whose squares overflow: "
            "rescale the columns (for example with MaxAbsScaler), or leave them out."
        )


def largest_size(values: np.ndarray) -> float:
    """max |x|, NaN if there is one; 0 of nothing.

    Examples
    --------
    >>> largest_size(np.array([[1.0, -3.0]]))
    3.0
    """
    return float(max(abs(values.max()), abs(values.min()))) if values.size else 0.0


def require_dense(X: Any, kernel: Kernel) -> None:
    """Refuse a sparse matrix, for kernels that need every value."""
    if sparse.issparse(X):
        raise ValueError(
            f"{type(kernel).__name__} does not take sparse matrices: densify the columns with "
            "`X.toarray()`, or choose Linear, Polynomial, RBF, Laplacian, Matern or Tanimoto."
        )


def require_non_negative(X: Any, kernel: Kernel) -> None:
    """Refuse negative values, for kernels of histograms and other counts."""
    values = X.data if sparse.issparse(X) else X
    if values.size and values.min() < 0:
        raise ValueError(
            f"{type(kernel).__name__} compares histograms and needs non-negative values: shift or "
            "rescale the columns (for example with MinMaxScaler), or use RBF or Laplacian."
        )


def positive(value: Any, argument: str, zero: bool = False) -> float:
    """`value` as a float, or an error naming `argument` unless it is finite and > 0 (`zero`: >= 0)."""
    expected = "a non-negative number" if zero else "a positive number"
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not np.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise ValueError(f"{argument}={value!r}: expected {expected}.")
    return float(value)


def positive_integer(value: Any, argument: str, zero: bool = False) -> int:
    """`value` as an int, or an error naming `argument` unless it is >= 1 (`zero`: >= 0)."""
    integer = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not integer or value < (0 if zero else 1):
        raise ValueError(f"{argument}={value!r}: expected an integer >= {0 if zero else 1}.")
    return int(value)


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _columns_label(columns: Columns) -> str:
    if columns is None:
        return ""
    if isinstance(columns, slice):
        start, stop = ("" if bound is None else bound for bound in (columns.start, columns.stop))
        return f"[{start}:{stop}]"
    if callable(columns):
        return "[selected]"
    values = [columns] if isinstance(columns, str | int | np.integer) else list(columns)
    return f"[{', '.join(map(str, values))}]" if len(values) <= 3 else f"[{len(values)} columns]"
