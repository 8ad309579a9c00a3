"""Kernels with a width, exp(-gamma b) of a distance b, and how gamma is chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from .base import LARGEST, Kernel, positive, require_dense, require_non_negative
from .bases import Base, ChiSquared, Manhattan, SquaredEuclidean, canonical
from .columns import Columns

MEDIAN_ROWS = 1000  # distinct rows a median is taken from: 500,000 pairs are enough

Distance = Callable[[Any, Any], np.ndarray]


class Exponential(Kernel):
    """Base class of the kernels k(x, z) = exp(-factor * gamma b(x, z)) of a distance b, the `base`."""

    bandwidth = "gamma"
    base: Base

    #: the degree of the distance in its arguments, where it has one
    degree: ClassVar[int | None] = None

    def __init__(self, gamma: float | str = "scale", factor: float = 1.0, columns: Columns = None) -> None:
        self.gamma = gamma
        self.factor = factor
        self.columns = columns

    def _fit(self, X: Any, sample_weight: np.ndarray | None) -> None:
        gamma = resolve_gamma(self.gamma, X, sample_weight, self.base.between, self.degree)
        self.gamma_ = positive(self.factor, "factor") * gamma

    def of_base(self, B: Any, xp: Any) -> Any:
        E = B * -float(self.gamma_)
        return xp.exp(E, out=E)

    def form(self) -> tuple[Any, ...]:
        return ("exp", -float(self.gamma_))


def resolve_gamma(
    gamma: float | str,
    X: Any,
    sample_weight: np.ndarray | None,
    distance: Distance,
    power: int | None = None,
    argument: str = "gamma",
) -> float:
    """The number behind `gamma`: itself, or 1 / the typical distance between training rows.

    Parameters
    ----------
    gamma : float, "scale", "weighted" or "median"
        "median" is 1 / median(distance(x_i, x_j)) over pairs of different rows; "weighted" is
        1 / (n_features * std^power), std the standard deviation of all training values. In both a row of
        weight w counts as w rows. "scale" is "weighted" with every row counted once, whatever its weight,
        as scikit-learn has it.
    X : array or CSR matrix of shape (n_samples, n_features)
    sample_weight : ndarray of shape (n_samples,) or None
    distance : callable
        Distance block of two sets of rows.
    power : int, optional
        The degree of the distance in its arguments: 2 for squared distances. Without it
        there are no rules "scale" and "weighted".
    argument : str, default="gamma"
        The parameter to name in errors.
    """
    if not isinstance(gamma, str):
        return positive(gamma, argument)
    weight = np.ones(X.shape[0]) if sample_weight is None else sample_weight
    if gamma in ("scale", "weighted") and power is not None:
        counts = np.ones(X.shape[0]) if gamma == "scale" else weight
        return _inverse(X.shape[1] * _variance(X, counts) ** (power / 2))
    if gamma == "median":
        return _inverse(median_distance(X, weight, distance))
    rules = "'median'" if power is None else "'scale', 'weighted' or 'median'"
    raise ValueError(f"{argument}={gamma!r}: expected a positive number, {rules}.")


def _inverse(distance: float) -> float:
    """1 / distance; rows that are all equal have no width, and any gamma gives the same kernel.

    The same holds for rows whose distances cannot be told from 0: they have no inverse.
    """
    return 1.0 / distance if distance > 1.0 / LARGEST**2 else 1.0


def _variance(X: Any, weight: np.ndarray) -> float:
    """Variance of all values, a row of weight w counting as w rows; 0 when it is only rounding."""
    share = weight / (weight.sum() * X.shape[1])
    mean = float((share @ X).sum())
    if sparse.issparse(X):
        # entries about the mean, and as many zeros as are not stored
        X = canonical(X)
        shares = np.repeat(share, np.diff(X.indptr))
        stored = float(shares @ np.square(X.data - mean))
        variance = stored + mean**2 * max(1.0 - float(shares.sum()), 0.0)
    else:
        variance = float((share @ np.square(np.subtract(X, mean, dtype=np.float64))).sum())
    return variance if variance > 1e-28 * mean**2 else 0.0


def median_distance(X: Any, weight: np.ndarray, distance: Distance) -> float:
    """Weighted median of the positive distances between rows; 0 when all rows are equal."""
    rows, weight = representative_rows(X, weight)
    distances = distance(X[rows], X[rows])
    upper = np.triu_indices(len(rows), k=1)
    values, pair_weight = distances[upper], np.outer(weight, weight)[upper]
    apart = values > 1e-12 * values.max(initial=0.0)
    return weighted_median(values[apart], pair_weight[apart]) if apart.any() else 0.0


def representative_rows(X: Any, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows and their weights, at most `MEDIAN_ROWS` of them.

    Rows are ordered along a fixed random direction, where equal rows are neighbours and are
    merged; a larger set is thinned at equal steps of cumulated weight. The result depends on
    the weighted set of rows alone, so weighting, repeating and reordering rows agree.
    """
    present = np.flatnonzero(weight > 0)
    along = X[present] @ np.random.RandomState(0).standard_normal(X.shape[1])
    order = np.argsort(along, kind="stable")
    present, along = present[order], along[order]
    rounding = 1e-13 * np.abs(along).max(initial=0.0)
    first = np.flatnonzero(np.diff(along, prepend=-np.inf) > rounding)
    rows, weight = present[first], np.add.reduceat(weight[present], first)
    if len(rows) <= MEDIAN_ROWS:
        return rows, weight
    steps = (np.arange(MEDIAN_ROWS) + 0.5) / MEDIAN_ROWS * weight.sum()
    chosen, times = np.unique(np.searchsorted(np.cumsum(weight), steps), return_counts=True)
    return rows[chosen], times.astype(np.float64)


def weighted_median(values: np.ndarray, weight: np.ndarray) -> float:
    """Smallest value whose cumulated weight reaches half of the total."""
    order = np.argsort(values, kind="stable")
    cumulated = np.cumsum(weight[order])
    return float(values[order][np.searchsorted(cumulated, 0.5 * cumulated[-1])])


class RBF(Exponential):
    """Gaussian kernel, k(x, z) = exp(-factor * gamma ||x - z||^2).

    Parameters
    ----------
    gamma : float, "scale", "weighted" or "median", default="scale"
        Inverse squared width. "scale" is 1 / (n_features * variance of the training
        values), as in scikit-learn's SVC, where every row given to `fit` counts once, whatever its
        weight. "weighted" is the same with a row of weight w counted as w rows. "median" is 1 / the
        weighted median of the positive squared distances between training rows. Without weights "scale"
        and "weighted" agree; with them, "weighted" and "median" treat a row of weight 2 as a row given twice.
    factor : float, default=1.0
        Multiplies `gamma`: a dictionary of widths around a rule is ``RBF("scale", factor=f)``
        for several f, written down before the data are known.
    columns : int, str, slice, list, mask or callable, optional
        The columns the kernel sees; all by default.
    standardize : bool, default=False
        Divide every column by its deviation over the training rows first, so that units do not matter; as in
        `Linear`.

    Attributes
    ----------
    gamma_ : float
        The value in use, factor included.

    Examples
    --------
    >>> import numpy as np
    >>> RBF(gamma=0.5)(np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.1353],
           [0.1353, 1.    ]])
    """

    name = "rbf"
    base = SquaredEuclidean()
    degree = 2

    def __init__(
        self,
        gamma: float | str = "scale",
        factor: float = 1.0,
        columns: Columns = None,
        standardize: bool = False,
    ) -> None:
        super().__init__(gamma, factor, columns)
        self.standardize = standardize


class Laplacian(Exponential):
    """Laplacian kernel, k(x, z) = exp(-factor * gamma ||x - z||_1).

    Less smooth than the Gaussian and more tolerant of outlying columns.

    Parameters
    ----------
    gamma : float, "scale", "weighted" or "median", default="scale"
        Inverse width. "scale" is 1 / (n_features * standard deviation of the training values),
        every row counted once; "weighted" is the same with a row of weight w counted as w rows;
        "median" is 1 / the weighted median of the positive L1 distances between training rows.
    factor : float, default=1.0
        Multiplies `gamma`.
    columns : int, str, slice, list, mask or callable, optional
        The columns the kernel sees; all by default.

    Attributes
    ----------
    gamma_ : float
        The value in use, factor included.

    Examples
    --------
    >>> import numpy as np
    >>> Laplacian(gamma=0.5)(np.array([[0.0], [2.0]])).round(4)
    array([[1.    , 0.3679],
           [0.3679, 1.    ]])
    """

    name = "laplacian"
    base = Manhattan()
    degree = 1


class Chi2(Exponential):
    """Exponential chi-square kernel of histograms.

    k(x, z) = exp(-factor * gamma * sum_j (x_j - z_j)^2 / (x_j + z_j)), for x, z >= 0 and 0 / 0 = 0.

    Parameters
    ----------
    gamma : float or "median", default="median"
        Inverse width; "median" is 1 / the median of the positive chi-square distances between
        training rows.
    factor : float, default=1.0
        Multiplies `gamma`.
    columns : int, str, slice, list, mask or callable, optional
        The columns the kernel sees; all by default.

    Attributes
    ----------
    gamma_ : float
        The value in use, factor included.

    References
    ----------
    Zhang, Marszalek, Lazebnik and Schmid, Local features and kernels for classification of
    texture and object categories, IJCV 2007.

    Examples
    --------
    >>> import numpy as np
    >>> Chi2(gamma=1.0)(np.array([[1.0, 0.0], [0.0, 1.0]])).round(4)
    array([[1.    , 0.1353],
           [0.1353, 1.    ]])
    """

    name = "chi2"
    base = ChiSquared()

    def __init__(self, gamma: float | str = "median", factor: float = 1.0, columns: Columns = None) -> None:
        super().__init__(gamma, factor, columns)

    def _view(self, X: Any) -> Any:
        view = super()._view(X)
        require_dense(view, self)
        require_non_negative(view, self)
        return view
