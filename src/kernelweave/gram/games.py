"""Shapley values of the features of an expansion sum_i c_i k(x, z_i), exact and in polynomial time.

A background row x' makes a game of a new sample x: the features of a set S are those of x, the others those
of x', and v(S) is the value of the expansion there (interventional). With v_f = k_f(x_f, z_f) and
a_f = k_f(x'_f, z_f), a kernel that is a product over features has the Shapley values

    phi_f = (v_f - a_f) int_0^1 prod_{g != f} ((1 - u) a_g + u v_g) du

the integral of the derivative of the multilinear extension (Owen, 1972). The integrand is a polynomial of
degree F - 1, for which ceil(F / 2) nodes of Gauss and Legendre are exact, and fewer where the factors of both
rows are so near one another that the rest is below rounding: see `rules`. Powers of sums over features are
products too, in polynomials that are truncated: see `_game_loops`. Sums of kernels add up their values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import factorial
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import Polynomial
from scipy import sparse
from scipy.special import roots_legendre
from sklearn.utils import gen_batches

from .._backend import is_tensor, torch
from .._typing import FloatArray, IntArray
from ..kernels import Kernel
from ..kernels.base import as_numeric, base_of, form_of, products_of, windows_of
from ..kernels.bases import home_of
from ..kernels.columns import as_table, take_columns
from ..kernels.strings import symbols
from ._workers import loop_threads, map_tiles

#: bytes of the factors of all features in memory at a time, for the rows and for the background each
BLOCK_BYTES = 1 << 22

#: an integral is computed to this accuracy, relative to the product half way between the rows
ROUNDING = 1e-14


class NotByFeatureError(ValueError):
    """Why a kernel has no exact attributions to features."""


class Attribution(NamedTuple):
    """How much each feature adds to the value of an expansion.

    Attributes
    ----------
    players : ndarray of int, shape (P, 2)
        Column of each feature, and its place in a string (-1 if the column holds no strings).
    values : ndarray of shape (J, n, P)
    """

    players: IntArray
    values: FloatArray

    @classmethod
    def of_nothing(cls, J: int, n: int) -> Attribution:
        """Attributions to no features."""
        return cls(np.zeros((0, 2), dtype=int), np.zeros((J, n, 0)))


def merged(parts: Sequence[Attribution]) -> Attribution:
    """The sum of attributions, whose features may overlap.

    Examples
    --------
    >>> one = Attribution(np.array([[0, -1], [2, -1]]), np.ones((1, 1, 2)))
    >>> two = Attribution(np.array([[1, -1], [2, -1]]), np.ones((1, 1, 2)))
    >>> merged([one, two]).values
    array([[[1., 1., 2.]]])
    """
    if len(parts) == 1:
        return parts[0]
    players, where = np.unique(np.concatenate([p.players for p in parts]), axis=0, return_inverse=True)
    values = np.zeros((*parts[0].values.shape[:2], len(players)))
    cuts = np.cumsum([len(part.players) for part in parts])[:-1]
    for part, places in zip(parts, np.split(where.ravel(), cuts), strict=True):
        values[..., places] += part.values  # no feature is twice in a part
    return Attribution(players, values)


@dataclass(frozen=True)
class Expansion:
    """sum_i coef_ij k(x, z_i), for every function j.

    Parameters
    ----------
    kernel : Kernel
        Fitted.
    Z : table of shape (I, n_features)
    coef : ndarray of shape (I, J)
    """

    kernel: Kernel
    Z: Any
    coef: FloatArray

    def attribution(self, X: Any, background: Any, weight: FloatArray, device: Any = None) -> Attribution:
        """Shapley values of every feature, against background rows whose weights may have any sum.

        Parameters
        ----------
        X, background : tables of shapes (n, n_features) and (B, n_features)
        weight : ndarray of shape (B,)
        device : torch.device, optional
            Where games are computed; by default on the host, by compiled loops.

        Raises
        ------
        NotByFeatureError
            For kernels that are not sums of products over features.

        Examples
        --------
        The game of x_0 x_1 at (2, 3), against zeros: each feature gets half of 6.

        >>> from kernelweave.kernels import Linear
        >>> Z, zeros = np.ones((1, 2)), np.zeros((1, 2))
        >>> kernel = (Linear(columns=[0]) * Linear(columns=[1])).fit(Z)
        >>> game = Expansion(kernel, Z, np.ones((1, 1)))
        >>> game.attribution(np.array([[2.0, 3.0]]), zeros, np.ones(1)).values
        array([[[3., 3.]]])
        """
        X, background, Z = (as_table(table) for table in (X, background, self.Z))
        linear = self.kernel.affine(Z, self.coef)
        if linear is not None:
            return self._affine(linear[0], X, background, weight)
        games = ((factor, _game(kernels)) for factor, kernels in products_of(self.kernel) if kernels)
        parts = [game.values(X, background, Z, weight, factor * self.coef, device) for factor, game in games]
        return merged(parts) if parts else Attribution.of_nothing(self.coef.shape[1], X.shape[0])

    def size(self, p: int) -> int:
        """The most columns, of p, that can have a part in it."""
        seen = {int(c) for _, own in products_of(self.kernel) for k in own for c in _seen(k, p)}
        return len(seen)

    def _affine(self, W: FloatArray, X: Any, background: Any, weight: FloatArray) -> Attribution:
        """phi_f = W_f (x_f sum_b w_b - sum_b w_b x'_bf)."""
        columns = np.flatnonzero(W.any(axis=1))
        x, b = (_dense(_numbers(table, columns)) for table in (X, background))
        difference = weight.sum() * x - weight @ b
        return Attribution(_players(columns), np.einsum("nf,fj->jnf", difference, W[columns]))


def check_by_feature(kernel: Kernel) -> None:
    """Raise `NotByFeatureError` unless a fitted kernel has exact attributions to features.

    Examples
    --------
    >>> from kernelweave.kernels import Matern
    >>> check_by_feature(Matern().fit(np.eye(2)))
    Traceback (most recent call last):
    ...
    kernelweave.gram.games.NotByFeatureError: Matern(length_scale=scale) is no product over columns
    """
    for _, kernels in products_of(kernel):
        if kernels:
            _game(kernels)


def constant_diagonal(kernel: Kernel) -> float | None:
    """k(x, x) of a fitted kernel, if its form makes that the same for every x; else None.

    Examples
    --------
    >>> from kernelweave.kernels import RBF
    >>> constant_diagonal((2.0 * RBF(1.0) + 1.0).fit(np.eye(2)))
    3.0
    """
    total = 0.0
    for factor, kernels in products_of(kernel):
        for part in kernels:
            base, form = base_of(part), form_of(part)
            if base is None or not base.distance or form is None or form[0] != "exp":
                return None
        total += factor
    return total


# -- one product of kernels -------------------------------------------------------------------


def _game(kernels: list[Kernel]) -> StringGame | ProductGame:
    """The game of a product of kernels."""
    if len(kernels) == 1 and (windows := windows_of(kernels[0])) is not None:
        return StringGame(kernels[0], *windows)
    rates, powers = [], []
    for kernel in kernels:
        base, form = base_of(kernel), form_of(kernel)
        one = np.zeros((1, 1))
        if base is None or form is None or base.by_column(one, one) is None:
            raise NotByFeatureError(f"{kernel.label} is no product over columns")
        kind, first, *rest = form
        if kind == "exp" and any(rest):
            raise NotByFeatureError(f"{kernel.label} is an exponential times a polynomial")
        if kind == "exp":
            rates.append((kernel, float(first)))
        else:
            powers.append((kernel, float(first), float(rest[0]), int(rest[1])))
    return ProductGame(rates, powers)


class SeenColumns(NamedTuple):
    """What the kernels of a product see: which columns, where the columns of each kernel are, and values.

    Attributes
    ----------
    columns : ndarray of int
        Columns of all kernels, sorted.
    places : list of ndarray of int
        Positions of the columns of each kernel among these.
    tables : list of list
        For rows, background and points: what each kernel sees.
    exponentials : int
        Number of columns that are in exponentials.
    """

    columns: IntArray
    places: list[IntArray]
    tables: list[list[Any]]
    exponentials: int

    def part(self, which: int, rows: slice) -> list[FloatArray]:
        """Some rows of a table, for each kernel."""
        return [_dense(view[rows]) for view in self.tables[which]]


@dataclass(frozen=True)
class ProductGame:
    """prod_s exp(r_s b_s) prod_k (g_k b_k + c_k)^p_k, every b a sum over columns.

    Attributes
    ----------
    rates : list of (kernel, r)
    powers : list of (kernel, g, c, p)
    """

    rates: list[tuple[Kernel, float]]
    powers: list[tuple[Kernel, float, float, int]]

    def values(
        self, X: Any, background: Any, Z: Any, weight: FloatArray, coef: FloatArray, device: Any = None
    ) -> Attribution:
        """Shapley values of the columns that the kernels see, a block of points and rows at a time."""
        seen = self._seen(X, background, Z)
        if device is not None:
            from .torch.games import product_values

            return Attribution(_players(seen.columns), product_values(self, seen, weight, coef, device))
        out = np.zeros((coef.shape[1], X.shape[0], len(seen.columns)))
        size = 8 * len(seen.columns) * (len(self.powers) + 1)
        step = max(1, min(len(coef), BLOCK_BYTES // (size * len(weight))))
        rows = max(1, min(BLOCK_BYTES // (size * step), -(-X.shape[0] // loop_threads())))
        for points in gen_batches(len(coef), step):
            own = coef[points]
            z = seen.part(2, points)
            of_background = self.factors(seen.part(1, slice(None)), z, seen)

            def add(part: slice, own: FloatArray = own, z: Any = z, known: Any = of_background) -> None:
                of_rows = self.factors(seen.part(0, part), z, seen)
                self._loop(of_rows, known, weight, np.ascontiguousarray(own), seen.exponentials, out[:, part])

            for _ in map_tiles(add, list(gen_batches(X.shape[0], rows))):
                pass
        return Attribution(_players(seen.columns), out)

    def _seen(self, X: Any, background: Any, Z: Any) -> SeenColumns:
        kernels = [*(k for k, _ in self.rates), *(k for k, _, _, _ in self.powers)]
        every = [_seen(kernel, X.shape[1]) for kernel in kernels]
        columns = np.unique(np.concatenate(every))
        tables = [[kernel.base_view(table) for kernel in kernels] for table in (X, background, Z)]
        exponentials = len({column for own in every[: len(self.rates)] for column in own})
        return SeenColumns(columns, [np.searchsorted(columns, own) for own in every], tables, exponentials)

    def factors(self, x: list[Any], z: list[Any], seen: SeenColumns) -> tuple[Any, Any]:
        """prod_s exp(r_s b_sf), shape (n, I, F), and g_k b_kf, shape (n, I, F, K); arrays or tensors."""
        shape, count = (len(x[0]), len(z[0]), len(seen.columns)), len(self.rates)
        xp = torch if is_tensor(x[0]) else np
        home = {"dtype": xp.float64, **home_of(x[0])}
        exponents = xp.zeros(shape, **home)
        for s, (kernel, rate) in enumerate(self.rates):
            _spread(rate * _by_column(kernel, x[s], z[s]), seen.places[s], exponents)
        summands = xp.zeros((*shape, len(self.powers)), **home)
        for k, (kernel, g, _, _) in enumerate(self.powers):
            s = count + k
            _spread(g * _by_column(kernel, x[s], z[s]), seen.places[s], summands[..., k])
        return xp.exp(exponents, out=exponents), summands

    def _loop(
        self,
        rows: Any,
        background: Any,
        weight: FloatArray,
        coef: FloatArray,
        exponentials: int,
        out: FloatArray,
    ) -> None:
        """Add the values of a block, given how many columns are in exponentials."""
        from ._game_loops import polynomial_games, power_games, product_games

        V, A, F = rows[0], background[0], out.shape[2]
        degrees = [p for *_, p in self.powers]
        if not degrees:
            product_games(V, A, weight, coef, *rules(F), out)
        elif degrees == [1] and not self.rates:  # a sum over columns: a game without interactions
            slopes = np.einsum("nifk,ij->jnf", rows[1], coef) * weight.sum()
            out += slopes - np.einsum("b,bifk,ij->jf", weight, background[1], coef)[:, None]
        elif len(degrees) == 1 and not self.rates:
            s, t = (np.ascontiguousarray(table[1][..., 0]) for table in (rows, background))
            power_games(s, t, self.powers[0][2], weight, coef, *bernoulli(degrees[0]), out)
        else:
            nodes = rules(F, -(-min(F, exponentials + sum(degrees)) // 2))
            constants = np.array([c for _, _, c, _ in self.powers])
            algebra = truncated(tuple(degrees))
            polynomial_games(V, A, rows[1], background[1], constants, weight, coef, *algebra, *nodes, out)

    def on_device(self, rows: Any, background: Any, share: Any, exponentials: int) -> Any:
        """The same values of a block of tensors, with shares (B, I, J) of the games: see `torch.games`."""
        from .torch.games import polynomial_games, power_games, product_games, sum_games

        F, degrees = rows[0].shape[2], [p for *_, p in self.powers]
        if not degrees:
            return product_games(rows[0], background[0], share, rules(F))
        s, t = (table[1][..., 0] for table in (rows, background))
        if degrees == [1] and not self.rates:
            return sum_games(s, t, share)
        if len(degrees) == 1 and not self.rates:
            return power_games(s, t, self.powers[0][2], share, *bernoulli(degrees[0]))
        nodes = rules(F, -(-min(F, exponentials + sum(degrees)) // 2))
        constants = np.array([c for _, _, c, _ in self.powers])
        return polynomial_games(rows, background, constants, share, *truncated(tuple(degrees)), nodes)


def _seen(kernel: Kernel, p: int) -> IntArray:
    """The columns, of p, that a kernel sees."""
    columns = kernel.base_columns
    return np.arange(p) if columns is None else columns


def _by_column(kernel: Kernel, x: Any, z: Any) -> Any:
    base = base_of(kernel)
    found = None if base is None else base.by_column(x, z)
    assert found is not None
    return found


def _spread(values: Any, places: IntArray, out: Any) -> None:
    """Add the values of a kernel to the values of its columns, which may occur more than once."""
    if len(places) == out.shape[-1] and (places == np.arange(len(places))).all():
        out += values
    elif len(np.unique(places)) == len(places):
        out[..., places] += values
    else:
        for column, place in enumerate(places):
            out[..., place] += values[..., column]


def _dense(values: Any) -> FloatArray:
    dense = values.toarray() if sparse.issparse(values) else values
    return np.ascontiguousarray(dense, dtype=np.float64)


def _numbers(table: Any, columns: IntArray) -> Any:
    return as_numeric(take_columns(table, columns), columns)


def _players(columns: IntArray) -> IntArray:
    return np.column_stack([columns, np.full(len(columns), -1)])


# -- strings ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class StringGame:
    """sum_d b_d sum_l sum_s c_|s| [x and z are equal on d places from l + s and l on].

    Features are the places of a string; places beyond its end hold a symbol that is equal to none.

    Attributes
    ----------
    kernel : Kernel
    lengths : ndarray
        b_0 = 0, b_1, ...
    shifts : ndarray or None
        c_0, c_1, ...; 1 for all of them.
    """

    kernel: Kernel
    lengths: FloatArray
    shifts: FloatArray | None

    def values(
        self, X: Any, background: Any, Z: Any, weight: FloatArray, coef: FloatArray, device: Any = None
    ) -> Attribution:
        """Shapley values of the places."""
        from ._game_loops import window_games

        texts = [symbols(self.kernel._view(table)) for table in (X, background, Z)]
        size = max(len(texts[0][0]), len(texts[1][0]))
        x, b = (np.pad(text, ((0, 0), (0, size - text.shape[1]))) for text in texts[:2])
        shifts = np.ones(max(size, texts[2].shape[1])) if self.shifts is None else self.shifts
        column = 0 if self.kernel.columns_ is None else int(self.kernel.columns_[0])
        table, rows = _orders(len(self.lengths)), max(1, -(-len(x) // (4 * loop_threads())))
        players = np.column_stack([np.full(size, column), np.arange(size)])
        if device is not None:
            from .torch.games import window_values

            found = window_values((x, b, texts[2]), weight, coef, self.lengths, shifts, table, device)
            return Attribution(players, found)
        out = np.zeros((coef.shape[1], len(x), size))

        def add(part: slice) -> None:
            window_games(x[part], texts[2], b, weight, coef, self.lengths, shifts, table, out[:, part])

        for _ in map_tiles(add, list(gen_batches(len(x), rows))):
            pass
        return Attribution(players, out)


@lru_cache(maxsize=16)
def _orders(size: int) -> FloatArray:
    """(p - 1)! q! / (p + q)!: how often a given one of p comes last among them, before all of q others."""
    table = np.zeros((size, size))
    for p, q in product(range(1, size), range(size)):
        table[p, q] = factorial(p - 1) * factorial(q) / factorial(p + q)
    return table


# -- integrals and algebras -------------------------------------------------------------------


@lru_cache(maxsize=128)
def _legendre(n: int) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights on [0, 1], exact for polynomials of degree 2 n - 1."""
    nodes, weights = roots_legendre(n)
    return 0.5 * (nodes + 1.0), 0.5 * weights


@lru_cache(maxsize=8)
def rules(F: int, most: int | None = None) -> tuple[FloatArray, IntArray, FloatArray, FloatArray]:
    """Rules of Gauss and Legendre for products of F factors, and which games each of them serves.

    With t_f = |v_f - a_f| / (v_f + a_f) and T = sum_f t_f, consider the ellipse with half axes (r + 1/r) / 2
    = c and (r - 1/r) / 2 about the interval. On it the product is at most the product of the factors half way
    times

        prod_f (1 + t_f c) <= (1 + c T / F)^F

    and Q nodes leave an error of at most 64/15 r^(-2Q) / (1 - r^-2) times that (Trefethen, Approximation
    Theory and Approximation Practice, Theorem 19.3). limits[q] is the largest T for which some r makes it
    less than `ROUNDING`; the last rule has `most` nodes, by default ceil(F / 2), exact for every game. In an
    algebra (`polynomial_games`) the same holds with norms in place of sizes.

    Returns
    -------
    limits : ndarray of shape (n_rules,)
    starts : ndarray of int, shape (n_rules + 1,)
    nodes, shares : ndarray of shape (starts[-1],)

    Examples
    --------
    >>> limits, starts, _, _ = rules(100)
    >>> int(np.diff(starts)[-1]), bool((np.diff(limits) >= 0).all())
    (50, True)
    """
    most = -(-F // 2) if most is None else most
    sizes = [*range(1, 13)]
    while sizes[-1] < most:
        sizes.append(max(sizes[-1] + 1, round(1.15 * sizes[-1])))
    sizes = [*(n for n in sizes if n < most), most]
    r = 1.0 + np.geomspace(1e-3, 1e3, 400)
    c = 0.5 * (r + 1.0 / r)
    limits = np.empty(len(sizes))
    for q, n in enumerate(sizes):
        # F log(1 + c T / F) <= room: the largest T over all r
        room = np.log(ROUNDING * 15.0 / 64.0 * (1.0 - r**-2)) + 2.0 * n * np.log(r)
        limits[q] = np.max(np.expm1(np.clip(room / F, 0.0, 700.0)) * F / c)
    limits[-1] = np.inf
    parts = [_legendre(n) for n in sizes]
    nodes, shares = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    return limits, np.cumsum([0, *sizes]), nodes, shares


@lru_cache(maxsize=32)
def bernoulli(p: int) -> tuple[FloatArray, FloatArray]:
    """b_r / r! and p! b_r' / r! times weights, at nodes that are exact for powers p: see `power_games`.

    The cumulants of a variable that is 1 with probability u, else 0, are b_1 = u, b_(r+1) = u (1 - u) b_r'.

    Examples
    --------
    >>> [table.round(4).tolist() for table in bernoulli(2)]
    [[[0.0, 0.5, 0.125]], [[0.0, 2.0, 0.0]]]
    """
    nodes, shares = _legendre(-(-p // 2))
    values, slopes = np.zeros((len(nodes), p + 1)), np.zeros((len(nodes), p + 1))
    b = Polynomial([0.0, 1.0])
    for r in range(1, p + 1):
        values[:, r] = b(nodes) / factorial(r)
        slopes[:, r] = shares * factorial(p) * b.deriv()(nodes) / factorial(r)
        b = Polynomial([0.0, 1.0, -1.0]) * b.deriv()
    return values, slopes


@lru_cache(maxsize=32)
def truncated(degrees: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """Polynomials in e_1, e_2, ... up to these degrees: powers of each term, and a multiplication table.

    Examples
    --------
    >>> powers, table = truncated((1,))
    >>> powers.ravel(), table.tolist()
    (array([0, 1]), [[0, 0, 0], [0, 1, 1], [1, 0, 1]])
    """
    powers = list(product(*(range(p + 1) for p in degrees)))
    where = {power: n for n, power in enumerate(powers)}
    table = []
    for (n, left), (m, right) in product(enumerate(powers), repeat=2):
        made = where.get(tuple(map(sum, zip(left, right, strict=True))))
        if made is not None:
            table.append((n, m, made))
    return np.array(powers), np.array(table)
