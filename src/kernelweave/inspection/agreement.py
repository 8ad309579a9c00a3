"""What features add on other samples: attributions over refits, and whether they agree with the target."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.base import clone, is_classifier
from sklearn.utils import _safe_indexing, check_random_state

from .._censored import survival_array
from .._typing import FloatArray, IntArray
from ..estimators._input import take
from ..estimators._survival import SurvivalTargets, _has_times, as_columns
from ..kernels import as_views
from ..losses import Cox
from ._models import fitted_model, spread
from .explanation import affordable, explain
from .stability import _check, draw_subsamples

#: most samples that are explained after each fit, against how many, and about how much work it is
MOST_ROWS, MOST_BACKGROUND, WORK = 100, 50, 2e7


@dataclass(frozen=True, eq=False, repr=False)
class AttributionStability:
    """Attributions of features over fits on sub-samples; `attribution_stability` makes it.

    Attributes
    ----------
    feature_names : list of str
        Kernels that are attributed as a whole come last.
    sizes : ndarray of shape (n_subsamples, n_features)
        Mean of |attribution| over samples that a fit did not see. Never 0, not even for noise.
    agreements : ndarray of shape (n_subsamples, n_features)
        Mean of attribution times target, the target standardised on those samples: positive where a
        feature moves the value the right way, 0 in the mean where it has nothing to do with the target.
    variances : ndarray of shape (n_subsamples, n_features)
        Variance of each agreement, where the feature has nothing to do with the target.
    correlation : float
        Correlation between the agreements of two fits for such a feature.
    level : float
        Level of the intervals.
    """

    feature_names: list[str]
    sizes: FloatArray
    agreements: FloatArray
    variances: FloatArray
    correlation: float
    level: float

    def __repr__(self) -> str:
        count = int((self.low > 0).sum())
        return f"AttributionStability({count} of {len(self.feature_names)} features agree with the target)"

    @property
    def mean(self) -> FloatArray:
        """Mean size of attributions, over samples and fits, shape (n_features,)."""
        return np.asarray(self.sizes.mean(axis=0))

    @property
    def agreement(self) -> FloatArray:
        """Mean agreement over the fits, shape (n_features,)."""
        return np.asarray(self.agreements.mean(axis=0))

    @property
    def low(self) -> FloatArray:
        """Lower ends of the intervals of the agreements: see `attribution_stability`."""
        return self.agreement - self._half_width()

    @property
    def high(self) -> FloatArray:
        """Upper ends of the intervals."""
        return self.agreement + self._half_width()

    def _half_width(self) -> FloatArray:
        pairs = max(1, len(self.agreements) // 2)
        spread = self.variances.mean(axis=0) * (self.correlation + (1.0 - self.correlation) / pairs)
        return np.asarray(norm.ppf(0.5 + 0.5 * self.level) * np.sqrt(spread))

    def frame(self) -> Any:
        """Features with size, agreement and its interval as a pandas DataFrame, best agreement first."""
        import pandas as pd

        columns = {"mean": self.mean, "agreement": self.agreement, "low": self.low, "high": self.high}
        table = pd.DataFrame({"feature": self.feature_names, **columns})
        return table.sort_values("agreement", ascending=False, kind="stable", ignore_index=True)


def attribution_stability(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    n_subsamples: int = 20,
    fraction: float = 0.5,
    level: float = 0.95,
    groups: Any = None,
    feature_names: Any = None,
    random_state: Any = None,
    progress: Callable[[int, int], Any] | None = None,
) -> AttributionStability:
    """Fit on many sub-samples, and explain samples that each fit has not seen.

    A mean of |phi_f(x)| is positive for every feature that a model reads, noise or not. What can be 0 is how
    far an attribution agrees with the target of samples that the model has not seen. With t the target,
    standardised over these samples to mean 0 and deviation 1, the agreement of feature f is

        s_f = mean_i t_i phi_f(x_i),        sum_f s_f = mean_i t_i f(x_i) = corr(f, t) std(f)

    so agreements take apart how well the model predicts new samples. Where a feature has nothing to do with
    the target, s_f is 0 in the mean, whatever the model made of it.

    Intervals are mean_j s_f +- z sqrt(Var), with Var the variance of the mean where a feature has nothing
    to do with the target, so that in this case at least `level` of them cover 0. For one fit it is known:
    given the model, the targets of the samples explained may come in any order, and over all orders s_f has
    the variance

        V_f = var(t) var_i(phi_f(x_i)) / (n_explained - 1)

    Fits are on complementary halves, as in `stability_selection`, and share samples, so that the variance
    of their mean does not go to 0 with their number. With c_A and c_B the estimates of an effect in two
    parts, of f n and (1 - f) n samples, s_f goes as c_A c_B; c = f c_A + (1 - f) c_B, the estimate of all
    samples, is the same for all fits, and with D = var(c) and delta = c_A - c_B

        c_A c_B = c^2 + (1 - 2 f) c delta - f (1 - f) delta^2,
        V = var(c_A) var(c_B) = D^2 / (f (1 - f))

    Over many fits the mean of delta^2 is constant, and c^2 is left, of variance 2 D^2 = r V, where r = 2 f
    (1 - f) is the correlation of two fits (times the share of the other samples that are explained). Both
    fits of a pair have the same c_A c_B and count as one, so for J fits Var = V (r + (1 - r) / (J / 2)). It
    is exact where many directions add up in s_f, which is normal then; where s_f is one product, V grows
    with c^2, and more than `level` of the intervals cover 0. For a feature with a large effect the intervals
    say that it is not 0; their width is about half of the uncertainty of its size, because the estimates of
    both parts err alike.

    Targets are classes (1 or 0 for each function), values, or, for survival, how far the events of a sample
    exceed those expected of any sample (martingale residuals, Cox at f = 0; with their sign changed where f
    is a time).

    Parameters
    ----------
    estimator : estimator, Pipeline ending in one, or search
        Cloned, and fitted again on each sub-sample with all transformers and kernel parameters; of a fitted
        search, the best estimator is taken.
    X, y
        As in its ``fit``.
    n_subsamples : int, default=20
        Two for each pair of halves.
    fraction : float, default=0.5
        Share of the samples in each; the others are explained, a hundred of them at most.
    level : float, default=0.95
        Level of the intervals.
    groups : array-like of shape (n,), optional
        Samples of one group stay together.
    feature_names : sequence of str, optional
        As in `explain`.
    random_state : int, RandomState or None, default=None
    progress : callable, optional
        Called as progress(done, n_subsamples) after every fit.

    Returns
    -------
    result : AttributionStability

    References
    ----------
    Shah and Samworth (2013), Variable selection with error control. Nadeau and Bengio (2003), Inference for
    the generalization error.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelweave as kw
    >>> from kernelweave.inspection import attribution_stability
    >>> from kernelweave.kernels import RBF
    >>> X = np.random.default_rng(0).normal(size=(60, 3))
    >>> found = attribution_stability(kw.MKLRegressor(RBF()), X, X[:, 1], n_subsamples=4, random_state=0)
    >>> found.frame().feature[0], bool(found.low[1] > 0)
    ('x1', True)
    """
    _check(n_subsamples, fraction, "pairs", level, None)
    estimator = getattr(estimator, "best_estimator_", estimator)
    inner = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    if y is None:
        raise ValueError("y: agreement needs a target; for models without targets use explain.")
    survival = isinstance(inner, SurvivalTargets)
    X, y = as_views(X, y), survival_array(y) if survival else np.asarray(y)
    X = X if hasattr(X, "shape") else np.asarray(X)
    for name, values in (("y", y), ("groups", groups)):
        if values is not None and len(values) != X.shape[0]:
            raise ValueError(f"{name} has {len(values)} entries for {X.shape[0]} samples.")
    strata = y if is_classifier(inner) and y.ndim == 1 else None
    random = check_random_state(random_state)
    parts = draw_subsamples(len(y), n_subsamples, fraction, True, strata, groups, random)
    found: list[_OneFit] = []
    for rows in parts:
        model = clone(estimator).fit(take(X, rows), y[rows])
        found.append(_agreements(model, X, y, rows, groups, feature_names))
        if progress is not None:
            progress(len(found), n_subsamples)
    names = list(dict.fromkeys(name for one in found for name in one.names))
    sizes, agreements, variances = (
        np.array([_placed(names, one.names, getattr(one, kind)) for one in found])
        for kind in ("sizes", "agreements", "variances")
    )
    correlation = float(np.mean([one.correlation for one in found]))
    return AttributionStability(names, sizes, agreements, variances, correlation, float(level))


class _OneFit(NamedTuple):
    """What one fit says about its features: see `AttributionStability`."""

    names: list[str]
    sizes: FloatArray
    agreements: FloatArray
    variances: FloatArray
    correlation: float


def _agreements(model: Any, X: Any, y: Any, rows: IntArray, groups: Any, feature_names: Any) -> _OneFit:
    """Agreements of features on samples outside these rows."""
    unseen = np.setdiff1d(np.arange(len(y)), rows)
    n, B = affordable(
        model, take(X, rows[:1]), min(len(unseen), MOST_ROWS), min(len(rows), MOST_BACKGROUND), WORK
    )
    chosen, others = unseen[spread(len(unseen), n)], rows[spread(len(rows), B)]
    told = explain(model, take(X, chosen), take(X, others), within=False, feature_names=feature_names)
    values, names = told.parts_by("feature")
    targets = _targets(fitted_model(model), _safe_indexing(y, chosen), len(values))
    targets = targets - targets.mean(axis=1, keepdims=True)
    scale = targets.std(axis=1, keepdims=True)
    targets = targets / np.where(scale > 0, scale, 1.0)
    agreements = np.einsum("jn,jnf->f", targets, values) / (len(values) * len(chosen))
    own = None if groups is None else np.asarray(groups)[chosen]
    share = len(rows) / len(y)
    correlation = 2.0 * share * (1.0 - share) * len(chosen) / len(unseen)
    sizes = np.abs(values).mean(axis=(0, 1))
    return _OneFit(list(names), sizes, agreements, _variances(targets, values, own), correlation)


def _variances(targets: FloatArray, values: FloatArray, groups: Any = None) -> FloatArray:
    """Variances of mean_ij t_ji phi_jif over all orders of t; for groups, over the signs of their sums.

    Examples
    --------
    >>> t, phi = np.array([[1.0, -1.0]]), np.array([[[2.0], [0.0]]])
    >>> _variances(t, phi)  # 1 and -1, one as likely as the other
    array([1.])
    """
    J, n, _ = values.shape
    centred = values - values.mean(axis=1, keepdims=True)
    if groups is not None:
        codes = np.unique(groups, return_inverse=True)[1]
        each = np.einsum("jn,jnf->nf", targets, centred) / (J * n)
        sums = np.zeros((int(codes.max()) + 1, each.shape[1]))
        np.add.at(sums, codes, each)
        return np.asarray((sums**2).sum(axis=0))
    found = np.zeros(values.shape[2])
    for j in range(J):
        together = np.einsum("jnf,nf->jf", centred, centred[j])
        found += (targets @ targets[j]) @ together
    return np.asarray(found / (J**2 * n**2 * max(n - 1, 1)))


def _targets(model: Any, y: Any, J: int) -> FloatArray:
    """What each function should agree with, shape (J, n)."""
    if isinstance(model, SurvivalTargets):
        Y = as_columns(y)[0].astype(np.float64)
        excess = -Cox().gradient(Y, np.zeros(len(Y)), np.ones(len(Y)))
        return np.asarray((-excess if _has_times(model) else excess)[None])
    if not hasattr(model, "classes_"):
        return np.asarray(y, dtype=np.float64).reshape(len(y), -1).T
    if y.ndim == 2:  # several labels
        return np.asarray(y, dtype=np.float64).T
    codes, K = np.searchsorted(model.classes_, y), len(model.classes_)
    if J == 1:
        result: FloatArray = codes[None].astype(np.float64)
        return result
    if J == K:
        result = (codes[None] == np.arange(K)[:, None]).astype(np.float64)
        return result
    pairs = [(a, b) for a in range(K) for b in range(a + 1, K)]
    return np.array([1.0 * (codes == b) - 1.0 * (codes == a) for a, b in pairs])


def _placed(names: list[str], own: list[str], values: FloatArray) -> FloatArray:
    """Values of all features; 0 for those that a fit does not have."""
    known = dict(zip(own, values.tolist(), strict=True))
    return np.array([known.get(name, 0.0) for name in names])
