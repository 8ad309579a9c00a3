"""Samples that lack a whole view: kernels masked, or completed by conditional mean embeddings.

s_im = 1 when sample i has what kernel m reads, O_m = {i : s_im = 1}. Every kernel is centred and scaled on
O_m alone, so that 0 is the mean embedding of the samples that have it.

    mask       K_m^s,ij = s_im s_jm K_m,ij, and an indicator kernel for each view with gaps
    complete   K_m^ = A K_m,OO A',  a_i = e_i for i in O_m,  a_i = (S_OO + lambda I)^-1 S_Oi for the others

with S = sum of K_l^s over the kernels l of the other views, so that one A serves all kernels of a view. Both
are positive semidefinite, whatever the pattern, and a new sample is treated as a training sample is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from .._linalg import blas_threads_for
from .._typing import BoolArray, FloatArray, IntArray
from ..kernels import Normalization, Views, resolve_normalization
from .sources import KernelSource
from .terms import Affine, KernelTerm, NotLinearError, checked, demand

#: what to do with views that samples lack
MISSING = ("error", "mask", "margin", "complete")

#: samples of a view that choose its ridge; the error of leaving one out hardly changes with more of them
MOST_LEFT_OUT = 500

#: ridges tried, in units of the mean diagonal of S
RIDGES = np.geomspace(1e-4, 1e2, 19)


# -- conditional mean embeddings ----------------------------------------------------------------


def left_out_errors(S: FloatArray, K: FloatArray, ridges: FloatArray) -> FloatArray:
    """Errors of leaving one out in the regression of embeddings, for every ridge.

    Kernel ridge regression with S predicts the embedding phi_i of kernel K. With G = (S + lambda I)^-1 the
    prediction by the other samples misses it by

        phi_i - phi_i^(-i) = sum_j G_ij phi_j / G_ii,    squared norm  (G K G)_ii / G_ii^2

    Parameters
    ----------
    S, K : ndarray of shape (n, n)
    ridges : ndarray of positive numbers

    Returns
    -------
    errors : ndarray
        Sums over the samples of the squared norms.

    Examples
    --------
    >>> left_out_errors(np.eye(2), np.eye(2), np.array([0.1, 1.0]))  # nothing to learn from each other
    array([2., 2.])
    """
    values, U = np.linalg.eigh(S)
    inner, found = U.T @ K @ U, []
    for ridge in ridges:
        V = U / (np.maximum(values, 0.0) + ridge)
        found.append(float((((V @ inner) * V).sum(axis=1) / (U * V).sum(axis=1) ** 2).sum()))
    return np.array(found)


class Completion:
    """Embeddings of the samples that lack a view, as combinations of those that have it.

        A = S_rO (S_OO + lambda W^-1)^-1

    W are the weights of the samples: one of weight w counts as w equal ones. Grunewalder et al. (2012); Song
    et al. (2009).

    Parameters
    ----------
    S : ndarray of shape (n_O, n_O)
        Kernels of the other views between samples that have this one.
    rest : ndarray of shape (n_rest, n_O)
        The same between those that lack it and those that have it.
    K : ndarray of shape (n_O, n_O)
        The kernel of this view, whose error of leaving one out chooses lambda; on some of the samples where
        they are many.
    weight : ndarray of shape (n_O,)

    Attributes
    ----------
    ridge : float
        lambda.
    rows : ndarray of shape (n_rest, n_O)
        A of the samples that lack the view.
    """

    def __init__(self, S: FloatArray, rest: FloatArray, K: FloatArray, weight: FloatArray) -> None:
        self.root = np.sqrt(weight)
        S = S * np.outer(self.root, self.root)
        unit = float(S.diagonal().mean())
        self.ridge = 1.0
        if unit > 0.0:
            some = np.unique(np.linspace(0, len(S) - 1, min(MOST_LEFT_OUT, len(S))).astype(int))
            part = np.ix_(some, some)
            errors = left_out_errors(
                S[part], K[part] * np.outer(self.root[some], self.root[some]), unit * RIDGES
            )
            self.ridge = unit * float(RIDGES[int(np.argmin(errors))])
        S.flat[:: len(S) + 1] += self.ridge
        self._factor = cho_factor(S, lower=True, overwrite_a=True, check_finite=False)
        self.rows = self.solve(rest.T).T

    def solve(self, values: FloatArray) -> FloatArray:
        """(S_OO + lambda W^-1)^-1 values."""
        root = self.root[:, None]
        return np.asarray(root * cho_solve(self._factor, root * values, check_finite=False))

    def completed(self, K: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A K_OO, and A K_OO A'."""
        cross = self.rows @ K
        square = cross @ self.rows.T
        return cross, 0.5 * (square + square.T)


# -- kernels with gaps ----------------------------------------------------------------------------


def centred_rule(K: FloatArray, normalize: Any, weight: FloatArray) -> Normalization:
    """Centring on some samples, at the scale of a normalisation fitted to the same samples."""
    rule = resolve_normalization("center").fit(K, weight)
    wanted = resolve_normalization(normalize)
    if wanted.needs_diag:
        raise ValueError(
            f"normalize={normalize!r}: kernels with missing views are centred on the samples that have them, "
            "and those on the sphere cannot be; pass normalize='variance'."
        )
    if rule.scale_ > 0 and wanted.name not in ("variance", "center"):
        rule.scale_ = wanted.fit(K, weight).scale_
    return rule


def spread_rule(rule: Normalization, samples: IntArray, n: int) -> Normalization:
    """A rule fitted on some of n samples, for coefficients of all of them."""
    whole = copy(rule)
    for name in rule.per_sample:
        values = np.zeros(n)
        values[samples] = getattr(rule, name)
        setattr(whole, name, values)
    return whole


class GapSource(KernelSource):
    """Kernels of another source on samples of which some lack some of the views.

    Parameters
    ----------
    source : KernelSource
        With `gaps` and `observed_in`; its values for samples that lack a view are not used.
    missing : {"mask", "margin", "complete"}
        "margin" masks without indicators.
    normalize : str, Normalization or None
        Gives the scale; kernels are centred anyway.
    sample_weight : ndarray of shape (n,), optional

    Attributes
    ----------
    rules : list of Normalization
        Fitted on the samples that have each kernel.
    completions : dict of Completion
        By view, of those that some samples lack.
    indicators : list of Indicator
        Kernels too, after all others.
    """

    given, copies = True, False

    def __init__(
        self, source: KernelSource, missing: str, normalize: Any, sample_weight: FloatArray | None = None
    ) -> None:
        assert source.gaps is not None
        self.source, self.missing, self.n_samples = source, missing, source.n_samples
        self.views, self.observed = source.gaps
        self.X = getattr(source, "X", None)  # the training samples
        self.weight = np.ones(self.n_samples) if sample_weight is None else sample_weight
        self.gapless = bool(self.observed.all())
        self.rules: list[Normalization] = []
        self.matrices: list[FloatArray] = []
        self.completions: dict[str, Completion] = {}
        self.indicators: list[Indicator] = []
        self._check_views()
        if missing == "complete" or not self.gapless:
            self._centre(normalize)
        if missing == "complete":
            self._complete()
        if missing == "mask":
            self.indicators = [self._indicator(v) for v in dict.fromkeys(self.views) if not self.has(v).all()]
        for one in self.indicators:
            values = one(self.observed)
            self.matrices.append(np.outer(values, values))
        self.names = [*source.names, *(f"{self.views[one.kernel]} observed" for one in self.indicators)]

    def has(self, view: str) -> BoolArray:
        """Which training samples have a view."""
        return np.asarray(self.observed[:, self.views.index(view)])

    def _check_views(self) -> None:
        for view in dict.fromkeys(self.views):
            count = int(self.has(view).sum())
            if count < 2:
                raise ValueError(
                    f"view {view!r} is missing in {self.n_samples - count} of {self.n_samples} training "
                    "samples: leave it out, or add samples that have it."
                )

    def _centre(self, normalize: Any) -> None:
        """Rules and matrices of all kernels, and their factors in S."""
        given = dict(self.source.train_all())
        pairs = [self._centred(m, given.pop(m), normalize) for m in range(len(self.source.names))]
        self.rules, self.matrices = [rule for rule, _ in pairs], [K for _, K in pairs]
        sizes = np.array([self.weight @ K.diagonal() for K in self.matrices])
        sizes /= self.weight @ self.observed
        counts = np.array([self.views.count(view) for view in self.views])
        # every view counts alike in S, and every kernel of a view
        self.shares = np.divide(1.0, sizes * counts, out=np.zeros(len(sizes)), where=sizes > 0)

    def _centred(self, m: int, K: FloatArray, normalize: Any) -> tuple[Normalization, FloatArray]:
        """The rule of kernel m, and its matrix: normalised where both samples have it, else 0."""
        own = np.flatnonzero(self.observed[:, m])
        part = K[np.ix_(own, own)].astype(np.float64, copy=False)
        rule = centred_rule(part, normalize, self.weight[own])
        whole = np.zeros((self.n_samples, self.n_samples))
        whole[np.ix_(own, own)] = rule.scale_ * rule.train(part)
        return spread_rule(rule, own, self.n_samples), whole

    def _complete(self) -> None:
        """Completions of all views, and what they make of the matrices."""
        total = np.zeros((self.n_samples, self.n_samples))
        for share, K in zip(self.shares, self.matrices, strict=True):
            total += share * K
        with blas_threads_for(self.n_samples):
            for view in dict.fromkeys(self.views):
                members = [m for m, own in enumerate(self.views) if own == view]
                own, rest = np.flatnonzero(self.has(view)), np.flatnonzero(~self.has(view))
                part = np.ix_(own, own)
                K = np.zeros((len(own), len(own)))
                for m in members:
                    K += self.shares[m] * self.matrices[m][part]
                found = Completion(total[part] - K, total[np.ix_(rest, own)], K, self.weight[own])
                self.completions[view] = found
        for m, K in enumerate([] if self.gapless else self.matrices):
            self._fill(K, np.flatnonzero(self.observed[:, m]), self.completions[self.views[m]])

    def _indicator(self, view: str) -> Indicator:
        """The indicator of a view, as heavy as one direction of its kernels: sum of K_ij^2 / (tr K)^2."""
        members = [m for m, own in enumerate(self.views) if own == view]
        parts = [self.matrices[m] for m in members]
        sizes = [float((K**2).sum() / max(np.trace(K), 1e-300) ** 2) for K in parts]
        level = float(self.weight @ self.has(view) / self.weight.sum())
        return Indicator(members[0], level, float(np.sqrt(np.mean(sizes) / (level * (1.0 - level)))))

    def _fill(self, K: FloatArray, own: IntArray, completion: Completion) -> None:
        """Rows and columns of the samples that lack a kernel, completed."""
        rest = np.setdiff1d(np.arange(self.n_samples), own)
        cross, square = completion.completed(K[np.ix_(own, own)])
        K[np.ix_(rest, own)], K[np.ix_(own, rest)], K[np.ix_(rest, rest)] = cross, cross.T, square

    # -- storage ----------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """What predictions need beside the source, and what makes it again around one."""
        return {
            "names": list(self.names),
            "views": list(self.views),
            "observed": self.observed,
            "rules": list(self.rules),
            "shares": self.shares if self.rules else None,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], source: Any, n: int) -> GapSource:
        """Around a source of n rows; it cannot train."""
        made = object.__new__(cls)
        names, views, rules = (state[name] for name in ("names", "views", "rules"))
        lists = all(type(some) is list for some in (names, views, rules))
        demand(
            lists and len(views) == len(source.names) <= len(names), "its kernels are not those of its views"
        )
        demand(all(isinstance(view, str) for view in views), "its views have no names")
        made.source, made.names, made.views, made.rules = source, names, views, rules
        made.observed = checked(state["observed"], "b", (n, len(views)))
        made.X = getattr(source, "X", None)
        made.n_samples, made.matrices, made.completions = source.n_samples, [], {}
        made.missing, made.gapless, made.indicators, made.weight = "complete", False, [], np.ones(0)
        if isinstance(made.X, Views):
            demand(set(views) <= set(made.X.names), "its kernels see views that are not there")
        if rules:
            made.shares = checked(state["shares"], "f", (len(views),))
            demand(len(rules) == len(views), "its kernels have no normalisation")
            for rule in rules:
                demand(isinstance(rule, Normalization), "a kernel has no normalisation")
                for name in rule.per_sample:
                    checked(vars(rule).get(name), "f", (n,))
        return made

    # -- a fit ------------------------------------------------------------------------------------

    def train(self, m: int) -> FloatArray:
        return self.matrices[m]

    def is_positive(self, m: int) -> bool:
        return m >= len(self.views) or self.source.is_positive(m)

    def term(self, m: int, rule: Normalization, factors: FloatArray, alpha: FloatArray) -> Any:
        coef = alpha * factors
        if m >= len(self.views):
            one = self.indicators[m - len(self.views)]
            return IndicatorTerm(m, one, one(self.observed) @ coef)
        own, completion = np.flatnonzero(self.observed[:, m]), self.completions.get(self.views[m])
        if self.gapless:
            term, beta = KernelTerm(m, rule, factors), alpha
            values = rule.train(self.source.train(m)) @ coef
        else:
            term = KernelTerm(m, self.rules[m], np.full(len(factors), self.rules[m].scale_))
            values, beta = (self.matrices[m] @ coef)[own], coef * self.observed[:, [m]]
        gamma, level = None, self.weight[own] @ values / self.weight[own].sum()
        if completion is not None:
            if not self.gapless:
                beta[own] += completion.rows.T @ np.delete(coef, own, axis=0)
            gamma = np.zeros_like(coef)
            gamma[own] = completion.solve(values - level)
        return GapTerm(term, beta, gamma, level)

    @property
    def patterns(self) -> BoolArray | None:
        """Which kernels samples have together, where their margins count in the space of these."""
        return np.unique(self.observed, axis=0) if self.missing == "margin" else None

    # -- prediction -------------------------------------------------------------------------------

    @property
    def held(self) -> int:  # type: ignore[override]
        """Kernel matrices of a block of new samples."""
        return len(self.views)

    def restrict(self, support: IntArray) -> None:
        """Forget the matrices; all samples are needed, for centring and for completion."""
        self.matrices, self.completions = [], {}

    def observed_in(self, X: Any) -> BoolArray:
        if not isinstance(X, Views):
            return self.source.observed_in(X)
        return np.asarray(X.observed[:, [X.names.index(view) for view in self.views]])

    def rows(self, X: Any, part: slice) -> GapBlock:
        return GapBlock(self, self.source.rows(X, part))

    def cross(self, m: int, X: GapBlock) -> FloatArray:
        return X.cross(m)

    def diag(self, m: int, X: GapBlock) -> FloatArray:
        return self.source.diag(m, X.X)


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
        """Of some samples, from what they have of each kernel."""
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
        (S_OO + lambda I)^-1 times the values of f on the samples that have the view, centred; None for a
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

    def affine(self, source: KernelSource, alpha: FloatArray) -> Affine:
        """Never: it depends on which views a sample has."""
        raise NotLinearError("samples may lack some of the views")

    def state(self) -> dict[str, Any]:
        """What makes the term again; see `Predictor.state`."""
        return {"own": self.own.state(), "beta": self.beta, "gamma": self.gamma, "level": self.level}

    @classmethod
    def from_state(cls, state: dict[str, Any], source: Any, shape: tuple[int, int]) -> GapTerm:
        """The term of a `state`, checked."""
        demand(isinstance(source, GapSource), "it completes views, of which it has none")
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

    def state(self) -> dict[str, Any]:
        """What makes the term again."""
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
        known = isinstance(source, GapSource) and type(m) is int and type(kernel) is int
        known = known and 0 <= kernel < len(source.views) <= m < len(source.names)
        demand(
            known and type(level) is float and type(scale) is float, "its indicator of a view makes no sense"
        )
        return cls(m, Indicator(kernel, level, scale), checked(state["coef"], "f", shape[1:]))


class _Rows(NamedTuple):
    """Stands for a source in `KernelTerm.add`, on those of a block that have its kernel."""

    block: GapBlock
    chosen: BoolArray

    def cross(self, m: int, X: Any) -> FloatArray:
        values = self.block.cross(m)
        return values if self.chosen.all() else values[self.chosen]

    def diag(self, m: int, X: Any) -> FloatArray:
        return np.asarray(self.block.source.diag(m, self.block)[self.chosen])


def with_gaps(
    make: Callable[[KernelSource, Any], Any],
    source: KernelSource,
    missing: str,
    normalize: Any,
    sample_weight: FloatArray | None = None,
) -> Any:
    """``make(source, normalize)``, a dictionary of kernels, of samples that may lack views.

    Where no training sample does, the kernels are fitted as they are, and completed for new samples.
    """
    if source.gaps is None or missing == "error":
        return make(source, normalize)
    gaps = GapSource(source, missing, normalize, sample_weight)
    if not gaps.gapless:
        return make(gaps, None)
    dictionary = make(source, normalize)
    dictionary.source = gaps
    return dictionary
