"""Families: many kernels written down once, made when the data are known."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from .bandwidth import RBF
from .base import Kernel, positive, positive_integer
from .columns import Columns, as_table, column_names, numeric_positions, resolve_columns, take_columns
from .compose import NestedKernels, common_accepts
from .convert import as_kernel
from .products import Linear

Named = list[tuple[str, Kernel]]


class Family(NestedKernels):
    """Base class of families: parameters, and ``expand(X)``, which names and builds the kernels.

    Estimators expand families at ``fit``. A family reads the columns of `X` (and task labels), never
    its values: bandwidths come from fitting the kernels, where sample weights count.
    A family may stand alone, be an element of a list of kernels, or be the `kernel` of another family.
    """

    _nested = ("kernel",)

    @abstractmethod
    def expand(self, X: Any) -> Named:
        """The names and kernels of the family on the columns of `X`."""


def members(kernel: Any, X: Any, default: Kernel) -> Named:
    """The kernels of `kernel`: None (`default`), one kernel, a list of them or a family."""
    if kernel is None:
        return [(default.label, default)]
    if isinstance(kernel, Family):
        return kernel.expand(X)
    if isinstance(kernel, list | tuple):
        if len(kernel) == 0:
            raise ValueError("kernel is an empty list: give at least one kernel.")
        return [pair for element in kernel for pair in members(element, X, default)]
    resolved = as_kernel(kernel, "kernel")
    return [(resolved.label, resolved)]


def on_columns(name: str, kernel: Any, X: Any, columns: Columns) -> Named:
    """The kernels of `kernel` on `columns`: under `name` if there is one, under "name: label" if several."""
    moved = placed(kernel, X, columns)
    return [(name if len(moved) == 1 else f"{name}: {label}", own) for label, own in moved]


def placed(kernel: Any, X: Any, columns: Columns) -> Named:
    """The kernels of `kernel` on `columns`, under their labels.

    A family sees these columns alone, and what it puts on some of them is on the same ones of `X`.

    Examples
    --------
    >>> placed(auto(factors=[1.0], linear=False), np.zeros((4, 9)), [7, 8])[1:]
    [('rbf x0', RBF(columns=[7], gamma='weighted')), ('rbf x1', RBF(columns=[8], gamma='weighted'))]
    """
    given = [*kernel] if isinstance(kernel, list | tuple) and len(kernel) else [kernel]
    moved: Named = []
    for one in given:
        if not isinstance(one, Family):
            moved += [(label, own.with_columns(columns)) for label, own in members(one, X, RBF())]
            continue
        table = as_table(X)
        places = np.arange(table.shape[1])[resolve_columns(columns, table)].ravel()
        part = take_columns(table, places)
        for label, own in one.expand(part):
            at = resolve_columns(own.columns, part)
            moved.append((label, own.with_columns(columns if at is None else places[at].tolist())))
    return moved


def positions(columns: Columns, X: Any, kernels: Named) -> np.ndarray:
    """The columns a family spreads over: `columns`, or by default those its kernels can take."""
    X = as_table(X)
    chosen = resolve_columns(columns, X)
    if chosen is not None:
        return chosen
    if common_accepts([kernel for _, kernel in kernels]) == "numeric":
        return require_columns(numeric_positions(X))
    return np.arange(X.shape[1])


def require_columns(chosen: np.ndarray) -> np.ndarray:
    """`chosen`, or an error when it is empty."""
    if chosen.size == 0:
        raise ValueError(
            "X has no numeric columns: encode them, or give kernels for them, such as Spectrum()."
        )
    return chosen


def feature_name(X: Any, position: int) -> str:
    """Name of a column: its own in a data frame, ``x3`` in an array."""
    names = column_names(X)
    return f"x{position}" if names is None else names[position]


AUTO_FACTORS = (0.1, 1.0, 10.0)
AUTO_MAX_COLUMNS = 20


class Bandwidths(Family):
    """One kernel at several widths; see `bandwidths`."""

    def __init__(
        self, values: Any = 7, kernel: Kernel | None = None, low: float = 0.01, high: float = 100.0
    ) -> None:
        self.values = values
        self.kernel = kernel
        self.low = low
        self.high = high

    def expand(self, X: Any) -> Named:
        kernels = [scaled for _, kernel in members(self.kernel, X, RBF()) for scaled in self._widths(kernel)]
        return [(kernel.label, kernel) for kernel in kernels]

    def _widths(self, kernel: Kernel) -> list[Kernel]:
        if kernel.bandwidth is None:
            raise ValueError(f"kernel={kernel.label} has no bandwidth: use RBF, Laplacian, Matern or Chi2.")
        key, values = self._grid(kernel.bandwidth)
        return [type(kernel)(**{**kernel.get_params(deep=False), key: value}) for value in values]

    def _grid(self, bandwidth: str) -> tuple[str, list[float]]:
        """The parameter to vary, and its values."""
        if np.ndim(self.values) == 1:
            if len(self.values) == 0:
                raise ValueError("values is empty: give at least one bandwidth, or their number.")
            return bandwidth, [positive(value, "values") for value in self.values]
        n = 7 if self.values is None else positive_integer(self.values, "values")
        low, high = positive(self.low, "low"), positive(self.high, "high")
        return "factor", np.geomspace(low, high, n).tolist() if n > 1 else [(low * high) ** 0.5]


class PerFeature(Family):
    """The same kernels on every column; see `per_feature`."""

    def __init__(self, kernel: Any = None, columns: Columns = None) -> None:
        self.kernel = kernel
        self.columns = columns

    def expand(self, X: Any) -> Named:
        kernels = members(self.kernel, X, RBF())
        columns = [int(position) for position in positions(self.columns, X, kernels)]
        return [pair for c in columns for pair in on_columns(feature_name(X, c), self.kernel, X, [c])]


class PerGroup(Family):
    """The same kernels on every group of columns; see `per_group`."""

    def __init__(self, groups: Mapping[str, Columns], kernel: Any = None) -> None:
        self.groups = groups
        self.kernel = kernel

    def expand(self, X: Any) -> Named:
        if not isinstance(self.groups, Mapping) or len(self.groups) == 0:
            raise ValueError(f"groups={self.groups!r}: expected a non-empty dict of name -> columns.")
        groups = self.groups.items()
        return [pair for name, columns in groups for pair in on_columns(str(name), self.kernel, X, columns)]


class Bands(Family):
    """The same kernels on contiguous bands of columns; see `bands`."""

    def __init__(self, n_bands: int, kernel: Any = None, columns: Columns = None) -> None:
        self.n_bands = n_bands
        self.kernel = kernel
        self.columns = columns

    def expand(self, X: Any) -> Named:
        kernels = members(self.kernel, X, RBF())
        columns = positions(self.columns, X, kernels)
        if positive_integer(self.n_bands, "n_bands") > columns.size:
            raise ValueError(
                f"n_bands={self.n_bands} is more than the {columns.size} columns: use fewer bands."
            )
        splits = np.array_split(columns, self.n_bands)
        return [
            pair for band in splits for pair in on_columns(_band_name(X, band), self.kernel, X, band.tolist())
        ]


class Auto(Family):
    """The default dictionary; see `auto`."""

    def __init__(
        self,
        factors: Sequence[float] = AUTO_FACTORS,
        max_columns: int = AUTO_MAX_COLUMNS,
        linear: bool = True,
        together: bool = False,
        units: bool = False,
    ) -> None:
        self.factors = factors
        self.max_columns = max_columns
        self.linear = linear
        self.together = together
        self.units = units

    def expand(self, X: Any) -> Named:
        X = as_table(X)
        columns = require_columns(numeric_positions(X)).tolist()
        named = self._on(None if len(columns) == X.shape[1] else columns)
        if 2 <= len(columns) <= self.max_columns:
            named += [(f"rbf {feature_name(X, c)}", RBF("weighted", columns=[c])) for c in columns]
        return named

    def across(self, tables: Sequence[Any]) -> Named:
        """Kernels on the numeric columns of several tables side by side; none without `together`."""
        if not self.together or len(tables) < 2 or any(sparse.issparse(table) for table in tables):
            return []
        starts = np.cumsum([0, *(table.shape[1] for table in tables)])
        pairs = zip(starts, tables, strict=False)
        numeric = np.concatenate([start + numeric_positions(table) for start, table in pairs])
        columns = slice(0, int(starts[-1])) if len(numeric) == starts[-1] else numeric.tolist()
        return self._on(columns) + ([("linear, as measured", Linear(columns))] if self.units else [])

    def _on(self, columns: Columns) -> Named:
        one_unit: dict[str, Any] = {"columns": columns, "standardize": True}
        widths = [RBF("weighted", factor=f, **one_unit) for f in self.factors]
        named: Named = [("linear", Linear(**one_unit))] if self.linear else []
        return named + [(f"rbf scale*{f:g}", kernel) for f, kernel in zip(self.factors, widths, strict=True)]


def bandwidths(
    values: int | Sequence[float] | None = None,
    kernel: Kernel | None = None,
    low: float = 0.01,
    high: float = 100.0,
) -> Bandwidths:
    """One kernel at several widths.

    Parameters
    ----------
    values : int or sequence of float, optional
        A number n (default 7): n factors from `low` to `high` in geometric steps, multiplying the
        bandwidth that the kernel's own rule takes from the data. A sequence: the values themselves of
        the kernel's bandwidth parameter (`gamma`, or `length_scale` of Matern).
    kernel : kernel with a bandwidth, default=RBF()
        RBF, Laplacian, Matern, Chi2, or a list of them.
    low, high : float, default=0.01 and 100
        The smallest and the largest factor.

    Examples
    --------
    >>> import numpy as np
    >>> [name for name, _ in bandwidths(3).expand(np.zeros((4, 2)))]
    ['RBF(gamma=scale, factor=0.01)', 'RBF(gamma=scale)', 'RBF(gamma=scale, factor=100)']
    """
    return Bandwidths(values, kernel, low, high)


def per_feature(kernel: Any = None, columns: Columns = None) -> PerFeature:
    """One kernel, or several, on each column alone: the weights rank the features.

    Parameters
    ----------
    kernel : kernel, list of kernels or family, default=RBF()
    columns : int, str, slice, list, mask or callable, optional
        The columns to use; by default all, or all numeric ones when the kernels take numbers.

    Examples
    --------
    >>> import numpy as np
    >>> per_feature().expand(np.zeros((4, 2)))
    [('x0', RBF(columns=[0])), ('x1', RBF(columns=[1]))]
    """
    return PerFeature(kernel, columns)


def per_group(groups: Mapping[str, Columns], kernel: Any = None) -> PerGroup:
    """One kernel, or several, on each group of columns: views, sensors, pathways.

    Parameters
    ----------
    groups : dict
        Name of the group -> its columns.
    kernel : kernel, list of kernels or family, default=RBF()

    Examples
    --------
    >>> import numpy as np
    >>> per_group({"colour": [0, 1], "shape": slice(2, 5)}, Linear()).expand(np.zeros((4, 5)))
    [('colour', Linear(columns=[0, 1])), ('shape', Linear(columns=slice(2, 5, None)))]
    """
    return PerGroup(groups, kernel)


def bands(n_bands: int, kernel: Any = None, columns: Columns = None) -> Bands:
    """One kernel, or several, on each of `n_bands` contiguous bands of columns, as even as possible.

    Parameters
    ----------
    n_bands : int
    kernel : kernel, list of kernels or family, default=RBF()
    columns : int, str, slice, list, mask or callable, optional
        The columns to split, in this order; by default all, or all numeric ones when the kernels
        take numbers.

    Examples
    --------
    >>> import numpy as np
    >>> [name for name, _ in bands(2, [Linear(), RBF()]).expand(np.zeros((4, 5)))]
    ['x0..x2: Linear', 'x0..x2: RBF(gamma=scale)', 'x3..x4: Linear', 'x3..x4: RBF(gamma=scale)']
    """
    return Bands(n_bands, kernel, columns)


def auto(
    factors: Sequence[float] = AUTO_FACTORS,
    max_columns: int = AUTO_MAX_COLUMNS,
    linear: bool = True,
    together: bool = False,
    units: bool = False,
) -> Auto:
    """The default dictionary, also named by ``kernels="auto"``.

    On all numeric columns, each divided by its deviation over the training rows (`standardize` of `Linear`
    and `RBF`): Linear, and Gaussian kernels at gamma = "scale" times `factors`. When there
    are 2 to `max_columns` numeric columns, also a Gaussian kernel at gamma = "scale" on each alone. Under
    sample weights it is "weighted" (see `RBF`), so that a weight of 2 is a row given twice.
    Columns of text that no other kernel of a fit sees are named in a warning.

    The first group covers straight, smooth and local functions of all columns together, whatever their
    units. The second lets the weights choose columns. Its limit keeps the dictionary at 24 kernels or fewer:
    with more columns single ones say little, and `per_group` or `bands` should say what belongs together.

    Parameters
    ----------
    factors : sequence of float, default=(0.1, 1.0, 10.0)
    max_columns : int, default=20
    linear : bool, default=True
        Whether a linear kernel is among them. In `MKLOneClass` it is not: to it, the most usual sample would
        be the one that is farthest out in the direction of the data.
    together : bool, default=False
        Whether there are also such kernels on the columns of all views side by side, where there are several;
        their names begin with "all views: ". Every sample has to have every view then.
    units : bool, default=False
        Whether there is then also a linear kernel on these columns as they are measured. In spectra all have
        the same unit, and those that vary more say more.

    Examples
    --------
    >>> import numpy as np
    >>> [name for name, _ in auto().expand(np.zeros((4, 2)))]
    ['linear', 'rbf scale*0.1', 'rbf scale*1', 'rbf scale*10', 'rbf x0', 'rbf x1']
    """
    return Auto(factors, max_columns, linear, together, units)


def _band_name(X: Any, band: np.ndarray) -> str:
    first, last = feature_name(X, band[0]), feature_name(X, band[-1])
    return first if len(band) == 1 else f"{first}..{last}"
