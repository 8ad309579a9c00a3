"""Kernels on samples some of which lack some of the views, masked or completed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

import numpy as np

from ..._linalg import blas_threads_for
from ..._typing import BoolArray, FloatArray, IntArray
from ...kernels import Normalization, Views, resolve_normalization
from ..sources import KernelSource, take_square
from ..terms import KernelTerm, checked, demand
from .completion import Completion, evenly
from .terms import GapBlock, GapTerm, Indicator, IndicatorTerm

#: what to do with views that samples lack
MISSING = ("error", "mask", "margin", "complete")


def centred_rule(K: FloatArray, normalize: Any, weight: FloatArray) -> Normalization:
    """Centring on some samples, with the scale of a normalisation fitted to the same samples."""
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
    """A rule that was fitted on some of n samples, applied to coefficients of all of them."""
    whole = copy(rule)
    for name in rule.per_sample:
        values = np.zeros(n)
        values[samples] = getattr(rule, name)
        setattr(whole, name, values)
    return whole


class GapSource(KernelSource):
    """Kernels of another source, on samples some of which lack some of the views.

    Parameters
    ----------
    source : KernelSource
        With `gaps` and `observed_in`; its values for samples that lack a view are not used.
    missing : {"mask", "margin", "complete"}
        "margin" masks without indicators.
    normalize : str, Normalization or None
        Gives the scale; kernels are centred in any case.
    sample_weight : ndarray of shape (n,), optional

    Attributes
    ----------
    rules : list of Normalization
        Fitted on the samples that have each kernel.
    completions : dict of Completion
        By view, for views that some samples lack.
    indicators : list of Indicator
        Further kernels, after all others.
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
        source.owned = self.observed
        self.rules: list[Normalization] = []
        self.matrices: list[FloatArray] = []
        self.completions: dict[str, Completion] = {}
        self.indicators: list[Indicator] = []
        self._check_views()
        if missing == "complete" or not self.gapless:
            self._centre(normalize)
        if missing == "complete":
            self._complete()
        elif not self.gapless:
            self._mask()
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
        """Rules of all kernels, their matrices on the samples that have them, and their factors in S."""
        found: dict[int, tuple[Normalization, FloatArray]] = {}
        for view, own in self._owners():
            for m, K in self.source.train_on(self._members(view), own):
                found[m] = self._centred(m, K, own, normalize)
        order = range(len(self.views))
        self.rules, self.matrices = [found[m][0] for m in order], [found[m][1] for m in order]
        pairs = zip(self.matrices, self.observed.T, strict=True)
        sizes = [self.weight[has] @ K.diagonal() / self.weight[has].sum() for K, has in pairs]
        counts = np.array([self.views.count(view) for view in self.views])
        # every view counts alike in S, and every kernel of a view
        self.shares = np.divide(1.0, sizes * counts, out=np.zeros(len(sizes)), where=np.array(sizes) > 0)

    def _owners(self) -> Iterator[tuple[str, IntArray]]:
        """The views, and the samples that have them."""
        for view in dict.fromkeys(self.views):
            yield view, np.flatnonzero(self.has(view))

    def _centred(
        self, m: int, K: FloatArray, own: IntArray, normalize: Any
    ) -> tuple[Normalization, FloatArray]:
        """The rule of kernel m, and its matrix on the samples that have it."""
        if not np.isfinite(K).all():
            raise ValueError(
                f"kernel {self.source.names[m]!r} has NaN or infinite entries between samples that have it: "
                "fill them, or leave these samples out. A sample lacks a kernel where its row and column "
                "are all NaN."
            )
        part = K.astype(np.float64, copy=False)
        rule = centred_rule(part, normalize, self.weight[own])
        part = rule.train(part)
        part *= rule.scale_
        return spread_rule(rule, own, self.n_samples), part

    def _mask(self) -> None:
        """Matrices of all samples: 0 except between samples that have a kernel."""
        for m, part in enumerate(self.matrices):
            self.matrices[m] = whole = np.zeros((self.n_samples, self.n_samples))
            own = np.flatnonzero(self.observed[:, m])
            whole[np.ix_(own, own)] = part

    def _complete(self) -> None:
        """Completions of all views, and the matrices of all samples that they make."""
        n = self.n_samples
        total = np.zeros((n, n))  # of all kernels
        for m, K in enumerate(self.matrices):
            there = np.flatnonzero(self.observed[:, m])
            total[np.ix_(there, there)] += self.shares[m] * K
        with blas_threads_for(n):
            for view, own in self._owners():
                members, rest = self._members(view), np.flatnonzero(~self.has(view))
                S, some = take_square(total, own), evenly(len(own))
                for m in members:
                    S -= self.shares[m] * self.matrices[m]
                K = sum(self.shares[m] * self.matrices[m][np.ix_(some, some)] for m in members)
                found = Completion(S, total[np.ix_(rest, own)], K, self.weight[own])
                self.completions[view] = found
                for m in members if len(rest) else ():
                    self.matrices[m] = found.spread(self.matrices[m], own, rest)

    def _members(self, view: str) -> list[int]:
        """The kernels of a view."""
        return [m for m, own in enumerate(self.views) if own == view]

    def _indicator(self, view: str) -> Indicator:
        """The indicator of a view, weighted like one direction of its kernels: sum of K_ij^2 / (tr K)^2."""
        members = self._members(view)
        parts = [self.matrices[m] for m in members]
        sizes = [float((K**2).sum() / max(np.trace(K), 1e-300) ** 2) for K in parts]
        level = float(self.weight @ self.has(view) / self.weight.sum())
        return Indicator(members[0], level, float(np.sqrt(np.mean(sizes) / (level * (1.0 - level)))))

    # -- storage ----------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """What predictions need besides the source, and what restores this object around a source."""
        return {
            "names": list(self.names),
            "views": list(self.views),
            "observed": self.observed,
            "rules": list(self.rules),
            "shares": self.shares if self.rules else None,
            "completes": self.completes,
        }

    @classmethod
    def around(cls, source: KernelSource, completes: bool) -> GapSource:
        """A source for predictions by features, which need no other."""
        assert source.gaps is not None
        state = {"names": source.names, **source.gaps._asdict(), "rules": [], "shares": None}
        return cls.from_state({**state, "completes": completes}, source, source.n_samples)

    @property
    def completes(self) -> bool:
        """Whether predictions ask for kernels of all views."""
        return self.missing == "complete"

    @classmethod
    def from_state(cls, state: dict[str, Any], source: Any, n: int) -> GapSource:
        """Restore it around a source of n rows; the result cannot train."""
        made = object.__new__(cls)
        names, views, rules = (state[name] for name in ("names", "views", "rules"))
        lists = all(type(some) is list for some in (names, views, rules))
        demand(
            lists and len(views) == len(source.names) <= len(names), "its kernels are not those of its views"
        )
        demand(all(isinstance(view, str) for view in views), "its views have no names")
        made.source, made.names, made.views, made.rules = source, names, views, rules
        made.observed = source.owned = checked(state["observed"], "b", (n, len(views)))
        made.X = getattr(source, "X", None)
        made.n_samples, made.matrices, made.completions = source.n_samples, [], {}
        demand(type(state["completes"]) is bool, "it does not say whether it completes views")
        made.missing = "complete" if state["completes"] else "mask"
        made.gapless, made.indicators, made.weight = False, [], np.ones(0)
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
        """The sets of kernels that samples have, if margins count in the space of these; else None."""
        return np.unique(self.observed, axis=0) if self.missing == "margin" else None

    # -- prediction -------------------------------------------------------------------------------

    @property
    def held(self) -> int:  # type: ignore[override]
        """Kernel matrices of a block of new samples."""
        return len(self.views)

    def restrict(self, support: IntArray) -> None:
        """Forget the matrices; where kernels are centred or completed, all samples are kept."""
        self.matrices, self.completions = [], {}
        if self.rules and not self.source.given:
            return
        keep = np.arange(self.n_samples) if self.rules else support
        self.source, self.observed = copy(self.source), self.observed[keep]
        self.source.restrict(keep)
        self.X = getattr(self.source, "X", None)

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


def with_gaps(
    make: Callable[[KernelSource, Any], Any],
    source: KernelSource,
    missing: str,
    normalize: Any,
    sample_weight: FloatArray | None = None,
) -> Any:
    """``make(source, normalize)``, a dictionary of kernels, on samples that may lack views.

    If no training sample lacks a view, the kernels are fitted as they are, and completed for new samples.
    """
    if source.gaps is None or missing == "error":
        return make(source, normalize)
    gaps = GapSource(source, missing, normalize, sample_weight)
    if not gaps.gapless:
        return make(gaps, None)
    dictionary = make(source, normalize)
    dictionary.source = gaps
    return dictionary
