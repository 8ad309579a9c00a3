"""Many Gaussian kernels on random columns at random widths, written down as bits and numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from .bandwidth import RBF
from .base import Kernel, as_numeric, positive, positive_integer
from .columns import Columns, as_table, take_columns
from .families import Family, feature_name, positions

#: random numbers drawn at a time
DRAWN = 1 << 20

#: columns up to which a kernel is named after them
NAMED = 3


class RandomSubsets(Family):
    """Gaussian kernels on random subsets of the columns; see `random_subsets`."""

    def __init__(
        self,
        n_kernels: int = 1000,
        min_columns: int = 1,
        max_columns: int | None = None,
        low: float = 0.01,
        high: float = 100.0,
        columns: Columns = None,
        random_state: Any = 0,
    ) -> None:
        self.n_kernels = n_kernels
        self.min_columns = min_columns
        self.max_columns = max_columns
        self.low = low
        self.high = high
        self.columns = columns
        self.random_state = random_state

    def expand(self, X: Any) -> Subsets:  # type: ignore[override]
        table = as_table(X)
        chosen = positions(self.columns, table, [("rbf", RBF())])
        n_kernels, sizes = positive_integer(self.n_kernels, "n_kernels"), self._sizes(len(chosen))
        low, high = positive(self.low, "low"), positive(self.high, "high")
        if low > high:
            raise ValueError(f"low={self.low} is larger than high={self.high}: swap them.")
        rng = check_random_state(self.random_state)
        factors = np.exp(rng.uniform(np.log(low), np.log(high), size=n_kernels))
        counts = rng.randint(sizes[0], sizes[1] + 1, size=n_kernels)
        names = [feature_name(table, column) for column in chosen]
        return Subsets(_draw(rng, counts, len(chosen)), factors, chosen, names)

    def _sizes(self, n_columns: int) -> tuple[int, int]:
        """The smallest and the largest number of columns."""
        least = positive_integer(self.min_columns, "min_columns")
        most = n_columns if self.max_columns is None else positive_integer(self.max_columns, "max_columns")
        most = min(most, n_columns)
        if least > most:
            raise ValueError(
                f"min_columns={self.min_columns}: there are {n_columns} columns and max_columns="
                f"{self.max_columns}; ask for fewer."
            )
        return least, most


class Subsets(Sequence[tuple[str, Kernel]]):
    """Names and unfitted kernels of `random_subsets`, made when they are asked for.

    Parameters
    ----------
    bits : ndarray of uint8, shape (M, ceil(F / 8))
        Which of `columns` every kernel sees, those of lower columns lower.
    factors : ndarray of shape (M,)
        Of gamma = "scale".
    columns : ndarray of int, shape (F,)
        Positions in the data.
    names : list of str
        Names of `columns`.

    Examples
    --------
    >>> family = random_subsets(n_kernels=100_000, max_columns=2, random_state=1)
    >>> kernels = family.expand(np.zeros((5, 4)))
    >>> len(kernels), kernels[2]
    (100000, ('rbf 2: scale*0.01 on x3', RBF(columns=[3], factor=0.01...)))
    """

    def __init__(
        self, bits: np.ndarray, factors: np.ndarray, columns: np.ndarray, names: Sequence[str]
    ) -> None:
        self.bits, self.factors, self.columns, self.names = bits, factors, columns, list(names)

    def __len__(self) -> int:
        return len(self.factors)

    @overload
    def __getitem__(self, m: int) -> tuple[str, Kernel]: ...
    @overload
    def __getitem__(self, m: slice) -> list[tuple[str, Kernel]]: ...
    def __getitem__(self, m: Any) -> Any:
        if isinstance(m, slice):
            return [self[k] for k in range(*m.indices(len(self)))]
        m = range(len(self))[m]
        return self._kernel(m, np.flatnonzero(_masks(self.bits[m : m + 1], len(self.columns))[0]))

    def __iter__(self) -> Iterator[tuple[str, Kernel]]:
        for start, some in _pieces(self.bits, len(self.columns)):
            masks = _masks(some, len(self.columns))
            ends = np.cumsum(masks.sum(axis=1))
            inside = np.split(np.nonzero(masks)[1], ends[:-1])
            yield from (self._kernel(start + k, columns) for k, columns in enumerate(inside))

    def _kernel(self, m: int, inside: np.ndarray) -> tuple[str, Kernel]:
        factor, columns = float(self.factors[m]), self.columns[inside].tolist()
        where = ", ".join(self.names[f] for f in inside) if len(inside) <= NAMED else f"{len(inside)} columns"
        return f"rbf {m}: scale*{factor:.3g} on {where}", RBF(factor=factor, columns=columns)

    def labels(self) -> list[str]:
        """Names of all kernels, without the kernels."""
        sizes = np.bitwise_count(self.bits).sum(axis=1).tolist()
        pairs = enumerate(zip(self.factors.tolist(), sizes, strict=True))
        names = [f"rbf {m}: scale*{factor:.3g} on {size} columns" for m, (factor, size) in pairs]
        few = np.flatnonzero(np.array(sizes) <= NAMED)
        masks = _masks(self.bits[few], len(self.columns))
        inside = np.split(np.nonzero(masks)[1], np.cumsum(masks.sum(axis=1))[:-1])
        for m, columns in zip(few.tolist(), inside, strict=False):  # one empty part where there is no name
            where = ", ".join(self.names[f] for f in columns)
            names[m] = f"rbf {m}: scale*{self.factors[m]:.3g} on {where}"
        return names

    def fit(self, X: Any, sample_weight: np.ndarray | None = None) -> Sequence[Kernel]:
        """The kernels fitted on training rows, of any weight: all at once where the data are dense."""
        table = as_table(X)
        if sparse.issparse(table):
            return [kernel.fit(table, sample_weight=sample_weight) for _, kernel in self]
        values = as_numeric(take_columns(table, self.columns), self.columns)
        return FittedSubsets(self, self.factors * _scale_gammas(self.bits, values))


class FittedSubsets(Sequence[Kernel]):
    """The kernels of `Subsets`, fitted.

    Parameters
    ----------
    unfitted : Subsets
    gammas : ndarray of shape (M,)
    """

    def __init__(self, unfitted: Subsets, gammas: np.ndarray) -> None:
        self.unfitted, self.gammas = unfitted, gammas

    def __len__(self) -> int:
        return len(self.gammas)

    @overload
    def __getitem__(self, m: int) -> Kernel: ...
    @overload
    def __getitem__(self, m: slice) -> list[Kernel]: ...
    def __getitem__(self, m: Any) -> Any:
        if isinstance(m, slice):
            return [self[k] for k in range(*m.indices(len(self)))]
        _, kernel = self.unfitted[m]
        kernel.columns_, kernel.gamma_ = np.array(kernel.columns), float(self.gammas[m])
        return kernel


def random_subsets(
    n_kernels: int = 1000,
    min_columns: int = 1,
    max_columns: int | None = None,
    low: float = 0.01,
    high: float = 100.0,
    columns: Columns = None,
    random_state: Any = 0,
) -> RandomSubsets:
    """Many Gaussian kernels, each on random columns and at a random width.

    Nothing but the columns of each kernel, as bits, and its width is stored, and a fit computes all
    kernels together: there may be 100,000 of them and more.

    Parameters
    ----------
    n_kernels : int, default=1000
    min_columns, max_columns : int, default=1 and all
        How many columns each kernel sees: their number is drawn evenly between the two, then the columns.
    low, high : float, default=0.01 and 100
        Widths are gamma = factor * "scale" (see `RBF`), the logarithm of the factor drawn evenly
        between those of `low` and `high`.
    columns : int, str, slice, list, mask or callable, optional
        The columns to draw from; all numeric ones by default.
    random_state : int, RandomState or None, default=0
        Seed of the draw; None draws others in every fit.

    Examples
    --------
    >>> random_subsets(3, max_columns=2).expand(np.zeros((4, 6)))[0][0]
    'rbf 0: scale*1.57 on x3, x4'
    """
    return RandomSubsets(n_kernels, min_columns, max_columns, low, high, columns, random_state)


def _draw(rng: np.random.RandomState, counts: np.ndarray, n_columns: int) -> np.ndarray:
    """Random subsets of so many columns each, as bits."""
    pieces = _pieces(counts[:, None], n_columns)
    return np.concatenate([_draw_part(rng, some, n_columns) for _, some in pieces])


def _draw_part(rng: np.random.RandomState, counts: np.ndarray, n_columns: int) -> np.ndarray:
    order = np.argsort(rng.random_sample((len(counts), n_columns)), axis=1)
    masks = np.zeros(order.shape, dtype=bool)
    np.put_along_axis(masks, order, np.arange(n_columns) < counts, axis=1)
    return np.packbits(masks, axis=1, bitorder="little")


def _scale_gammas(bits: np.ndarray, X: np.ndarray) -> np.ndarray:
    """gamma = "scale" on every subset: 1 / (columns * variance of all their values), as in `resolve_gamma`.

    With means m_f and variances v_f of the columns, that of a subset is mean(v_f + (m_f - mean(m))^2).
    """
    values = np.asarray(X, dtype=np.float64)
    means = values.mean(axis=0)
    variances, found = ((values - means) ** 2).mean(axis=0), []
    for _, some in _pieces(bits, len(means)):
        masks = _masks(some, len(means)).astype(np.float64)
        sizes = masks.sum(axis=1)
        centres = masks @ means / sizes
        between = masks * (means - centres[:, None]) ** 2
        spread = masks @ variances + between.sum(axis=1)
        # subsets of equal values have no width, and any gamma gives the same kernel
        found.append(1.0 / np.where(spread > 1e-28 * sizes * centres**2, spread, 1.0))
    return np.concatenate(found)


def _pieces(bits: np.ndarray, n_columns: int) -> Iterator[tuple[int, np.ndarray]]:
    """Some subsets after another, and where they start."""
    step = max(1, DRAWN // n_columns)
    for start in range(0, len(bits), step):
        yield start, bits[start : start + step]


def _masks(bits: np.ndarray, n_columns: int) -> np.ndarray:
    return np.unpackbits(bits, axis=1, count=n_columns, bitorder="little")
