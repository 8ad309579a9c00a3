"""What kernels with gaps add to predictions: for samples that have a view, and for samples that lack it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..._typing import BoolArray, FloatArray, IntArray
from ..games import Expansion, NotByFeatureError
from ..sources import KernelSource
from ..terms import Affine, FactorTerm, KernelTerm, NotLinearError, checked, demand

if TYPE_CHECKING:
    from .sources import GapSource


class Indicator(NamedTuple):
    """scale (s - level): whether a sample has a view, centred over the training samples.

    Attributes
    ----------
    kernel : int
        One of the kernels of the view.
    level : float
        Share of the training samples that have it.
    scale : float
    """

    kernel: int
    level: float
    scale: float

    def __call__(self, observed: BoolArray) -> FloatArray:
        """Values on some samples, from which kernels they have."""
        return self.scale * (observed[:, self.kernel] - self.level)


class GapBlock:
    """New samples, which views they have, and the kernel values that several terms share.

    Parameters
    ----------
    source : GapSource
    X : as the source's own source takes it
    """

    def __init__(self, source: GapSource, X: Any) -> None:
        self.source, self.X = source, X
        self.observed = source.observed_in(X)
        self._crosses: dict[int, FloatArray] = {}
        self._features: dict[int, FloatArray] = {}

    def features(self, m: int, features: Any) -> FloatArray:
        """Features of kernel m, not centred."""
        if m not in self._features:
            self._features[m] = features.raw(self.X)
        return self._features[m]

    def cross(self, m: int) -> FloatArray:
        """Values of kernel m, not normalised."""
        if m not in self._crosses:
            self._crosses[m] = self.source.source.cross(m, self.X)
        return self._crosses[m]


class GapTerm:
    """What a kernel adds on samples that have it, and on samples that lack it.

        f(x) = sum_i beta_i k_m(x, x_i)                               where x has the view of kernel m
             = level + sum_l share_l sum_i s_il gamma_i k_l(x, x_i)   where it lacks it

    over the kernels l of its other views.

    Parameters
    ----------
    own : KernelTerm
        Of kernel m, whose coefficients are beta.
    beta : ndarray of shape (n, J)
    gamma : ndarray of shape (n, J), optional
        (S_OO + lambda I)^-1 times the centred values of f on the samples that have the view; None for a
        kernel that is not completed.
    level : ndarray of shape (J,)
        Mean of f over the samples that have the view.
    """

    def __init__(
        self, own: KernelTerm, beta: FloatArray, gamma: FloatArray | None, level: FloatArray
    ) -> None:
        self.own, self.beta, self.gamma, self.level = own, beta, gamma, level
        self.factors, self.m = own.factors * beta.any(axis=0), own.m

    def add(self, source: GapSource, alpha: FloatArray, X: GapBlock, out: FloatArray) -> None:
        """Add the values on new samples to `out` (n_new, J)."""
        has = X.observed[:, self.m]
        values = np.zeros((int(has.sum()), out.shape[1]))
        self.own.add(_Rows(X, has), self.beta, None, values)  # type: ignore[arg-type]
        out[has] += values
        if has.all():
            return
        out[~has] += self.level
        if self.gamma is None:
            return
        for m, view in enumerate(source.views):
            rows = ~has & X.observed[:, m]
            if view == source.views[self.m] or not rows.any():
                continue
            rule = source.rules[m]
            coef, offset = rule.expand(self.gamma * source.observed[:, [m]])
            out[rows] += source.shares[m] * rule.scale_ * (X.cross(m)[rows] @ coef + offset)

    def used(self, alpha: FloatArray) -> BoolArray:
        """All training samples."""
        return np.ones(len(alpha), dtype=bool)

    def restrict(self, support: IntArray) -> GapTerm:
        """The term itself."""
        return self

    def take(self, functions: Sequence[int]) -> GapTerm:
        """The term of some of the functions."""
        gamma = None if self.gamma is None else self.gamma[:, functions]
        return GapTerm(self.own.take(functions), self.beta[:, functions], gamma, self.level[functions])

    def split(self, source: KernelSource) -> Iterator[tuple[int, Any]]:
        """The kernel, and the term itself."""
        yield self.m, self

    def expansion(self, source: GapSource, alpha: FloatArray) -> Expansion:
        """The expansion on samples that have the view."""
        return self.own.expansion(source.source, self.beta)

    def affine(self, source: KernelSource, alpha: FloatArray) -> Affine:
        """Never: it depends on which views a sample has."""
        raise NotLinearError("samples may lack some of the views")

    def state(self) -> dict[str, Any]:
        """What the term is restored from; see `Predictor.state`."""
        return {"own": self.own.state(), "beta": self.beta, "gamma": self.gamma, "level": self.level}

    @classmethod
    def from_state(cls, state: dict[str, Any], source: Any, shape: tuple[int, int]) -> GapTerm:
        """The term of a `state`, checked."""
        demand(hasattr(source, "views"), "it completes views, of which it has none")
        own, gamma = KernelTerm.from_state(state["own"], source.source, shape), state["gamma"]
        demand(own.m < len(source.views), "it completes a kernel that is not there")
        if gamma is not None:
            demand(len(source.rules) == len(source.views), "its other views have no normalisation")
            held = all(getattr(source.source, "kernels", source.views))
            demand(held, "it completes a view by kernels that are not there")
            checked(gamma, "f", shape)
        return cls(own, checked(state["beta"], "f", shape), gamma, checked(state["level"], "f", shape[1:]))


class IndicatorTerm:
    """What the indicator of a view adds: coef_j times its values.

    Parameters
    ----------
    m : int
        Its number among the kernels.
    indicator : Indicator
    coef : ndarray of shape (J,)
    """

    def __init__(self, m: int, indicator: Indicator, coef: FloatArray) -> None:
        self.m, self.indicator, self.factors = m, indicator, coef

    def add(self, source: GapSource, alpha: FloatArray, X: GapBlock, out: FloatArray) -> None:
        """Add the values on new samples to `out` (n_new, J)."""
        out += np.outer(self.indicator(X.observed), self.factors)

    def used(self, alpha: FloatArray) -> BoolArray:
        """No training samples."""
        return np.zeros(len(alpha), dtype=bool)

    def restrict(self, support: IntArray) -> IndicatorTerm:
        """The term itself."""
        return self

    def take(self, functions: Sequence[int]) -> IndicatorTerm:
        """The term of some of the functions."""
        return IndicatorTerm(self.m, self.indicator, self.factors[functions])

    split, affine = GapTerm.split, GapTerm.affine

    def expansion(self, source: GapSource, alpha: FloatArray) -> Expansion:
        """Never: it has no kernel."""
        raise NotByFeatureError("it says which views a sample has")

    def state(self) -> dict[str, Any]:
        """What the term is restored from."""
        one = self.indicator
        return {
            "kernel": int(self.m),
            "indicator": (int(one.kernel), float(one.level), float(one.scale)),
            "coef": self.factors,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], source: Any, shape: tuple[int, int]) -> IndicatorTerm:
        """The term of a `state`, checked."""
        m, (kernel, level, scale) = state["kernel"], state["indicator"]
        known = hasattr(source, "views") and type(m) is int and type(kernel) is int
        known = known and 0 <= kernel < len(source.views) <= m < len(source.names)
        demand(
            known and type(level) is float and type(scale) is float, "its indicator of a view makes no sense"
        )
        return cls(m, Indicator(kernel, level, scale), checked(state["coef"], "f", shape[1:]))


class GapFactorTerm:
    """What one kernel adds by its features, on samples that have it and on samples that lack it.

        f(x) = z_m(x)'coef                              where x has the view of kernel m
             = level + sum_l z_l(x)'coef_l              where it lacks it

    over the kernels l of its other views.

    Parameters
    ----------
    own : FactorTerm
    level : ndarray of shape (J,)
    others : list of FactorTerm
        With centred features; none for a kernel that is not completed.
    """

    def __init__(self, own: FactorTerm, level: FloatArray, others: list[FactorTerm]) -> None:
        self.own, self.level, self.others, self.m = own, level, others, own.m
        self.features = own.features

    def add(self, source: GapSource, alpha: FloatArray, X: GapBlock, out: FloatArray) -> None:
        """Add the values on new samples to `out` (n_new, J)."""
        has = X.observed[:, self.m]
        out[has] += self._values(self.own, X, has)
        if has.all():
            return
        out[~has] += self.level
        for term in self.others:
            rows = ~has & X.observed[:, term.m]
            if rows.any():
                out[rows] += self._values(term, X, rows)

    def _values(self, term: FactorTerm, X: GapBlock, rows: BoolArray) -> FloatArray:
        Z = X.features(term.m, term.features)[rows]
        mean = term.features.mean
        return np.asarray(Z @ term.coef - (0.0 if mean is None else mean @ term.coef))

    def used(self, alpha: FloatArray) -> BoolArray:
        """No training samples: the features have their landmarks."""
        return self.own.used(alpha)

    def restrict(self, support: IntArray) -> GapFactorTerm:
        """The term itself."""
        return self

    def split(self, source: KernelSource) -> Iterator[tuple[int, Any]]:
        """The kernel, and the term itself."""
        yield self.m, self

    def expansion(self, source: GapSource, alpha: FloatArray) -> Expansion:
        """The expansion on samples that have the view."""
        return self.own.expansion(source.source, alpha)

    def affine(self, source: KernelSource, alpha: FloatArray) -> Affine:
        """Never: it depends on which views a sample has."""
        raise NotLinearError("samples may lack some of the views")

    def state(self) -> dict[str, Any]:
        """What the term is restored from."""
        return {
            "own": self.own.state(),
            "level": self.level,
            "others": [term.state() for term in self.others],
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], source: Any, shape: tuple[int, int]) -> GapFactorTerm:
        """The term of a `state`, checked."""
        demand(hasattr(source, "views"), "it completes views, of which it has none")
        terms = [FactorTerm.from_state(one, source.source, shape) for one in (state["own"], *state["others"])]
        demand(all(term.m < len(source.views) for term in terms), "it has kernels of no view")
        return cls(terms[0], checked(state["level"], "f", shape[1:]), terms[1:])


class _Rows(NamedTuple):
    """Stands for a source in `KernelTerm.add`, on the samples of a block that have its kernel."""

    block: GapBlock
    chosen: BoolArray

    def cross(self, m: int, X: Any) -> FloatArray:
        values = self.block.cross(m)
        return values if self.chosen.all() else values[self.chosen]

    def diag(self, m: int, X: Any) -> FloatArray:
        return np.asarray(self.block.source.diag(m, self.block)[self.chosen])
