"""Which method to try first, from the kernels, the data and the targets, before any model is fitted."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing

from .._typing import FloatArray
from ..gram import Gram, KernelStack
from ..gram.stack import as_stack
from ..kernels import as_views
from ..kernels.columns import as_table
from ..regularizers import LpNorm, Regularizer, Uniform
from ..regularizers.structured import alignments
from ._statements import check_count, dictionary, is_classification, target_matrix
from .alignment import effective_number
from .complexity import quad_columns, suprema_of


class Signal(NamedTuple):
    """Statistics of M centred kernels of trace n against a target T of trace n, one entry per kernel.

    Attributes
    ----------
    sizes : ndarray of shape (M,)
        ||K_m||.
    alignment, by_chance : ndarray of shape (M,)
        Cosine with T, and its mean over permutations of T.
    strength : ndarray of shape (M,)
        (<K_m, T> - its mean over permutations) / n^2; r^2 of the target for a kernel of one feature.
    square : ndarray of shape (M,)
        An estimate of strength^2 from products over four different samples, so that it does not contain the
        square of the noise.
    cosines : ndarray of shape (M, M)
        Cosines between the kernels, without the identity's share; 0 on average for unrelated kernels.
    z : float
        Sum of strengths, in standard deviations of what chance gives.
    peak, chance_peak : float
        Largest strength, each in its own standard deviation, and what only one in twenty random
        targets exceeds.
    quads : ndarray of shape (n_draws, M)
        sigma' K_m sigma for random signs.
    """

    sizes: FloatArray
    alignment: FloatArray
    by_chance: FloatArray
    strength: FloatArray
    square: FloatArray
    cosines: FloatArray
    z: float
    peak: float
    chance_peak: float
    quads: FloatArray


def measure(gram: Gram, Y: FloatArray, n_draws: int = 100, seed: int = 0) -> Signal:
    """Statistics of the kernels of `gram`, centred and of trace n, against centred targets Y."""
    n, T = gram.n_samples, Y @ Y.T
    T *= n / np.trace(T)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(n, n_draws))
    total = np.zeros((n, n))
    rows, quads = [], []
    for unit in np.eye(gram.n_kernels):
        K = gram.combine(unit)
        total += K
        rows.append((np.linalg.norm(K), np.vdot(K, T), _squared_mean(K * T)))
        quads.append(quad_columns(K, signs))
    size, product, square = np.array(rows).T
    chance = n * n / (n - 1.0)  # tr(K) tr(T) / (n - 1)
    reach = size * float(np.linalg.norm(T))
    drawn = np.column_stack(quads)
    # sigma sigma' is a random target of trace n and norm n
    peaks = ((drawn - n) / chance_spread(size, float(n), n)).max(axis=1)
    return Signal(
        sizes=size,
        alignment=product / reach,
        by_chance=chance / reach,
        strength=(product - chance) / n**2,
        square=square,
        cosines=_without_identity(alignments(gram), size, n),
        z=_standardised(total, T),
        peak=float(((product - chance) / chance_spread(size, float(np.linalg.norm(T)), n)).max()),
        chance_peak=float(np.quantile(peaks, 0.95)),
        quads=drawn,
    )


def _squared_mean(h: FloatArray) -> float:
    """Mean of h_ij h_kl over different i, j, k, l, times (1 - 1/n)^2: (sum h)^2 less what shares a sample."""
    n = len(h)
    np.fill_diagonal(h, 0.0)
    rows = h.sum(axis=1)
    apart = float(rows.sum()) ** 2 - 4.0 * float(rows @ rows) + 2.0 * float(np.vdot(h, h))
    return apart * (n - 1.0) / ((n - 2.0) * (n - 3.0)) / n**3


def _standardised(K: FloatArray, T: FloatArray) -> float:
    """<K, T> less its mean by chance, in standard deviations, for a sum K of kernels of trace n."""
    n = len(K)
    scale = np.trace(K) / n  # the number of kernels
    spread = chance_spread(np.array([np.linalg.norm(K) / scale]), float(np.linalg.norm(T)), n)
    return float((np.vdot(K, T) / scale - n * n / (n - 1.0)) / spread[0])


def chance_spread(sizes: FloatArray, target_size: float, n: int) -> FloatArray:
    """Standard deviation of <K, O T O'> over rotations O of the n - 1 centred dimensions.

    For K and T of trace n, from their norms: 2 ||K_0||^2 ||T_0||^2 / ((N - 1)(N + 2)) with N = n - 1 and
    ||K_0||^2 = ||K||^2 - n^2 / N.
    """
    N = n - 1.0
    left, right = (np.maximum(np.square(size) - n * n / N, 1e-12 * n) for size in (sizes, target_size))
    return np.asarray(np.sqrt(2.0 * left * right / ((N - 1.0) * (N + 2.0))))


def _without_identity(A: FloatArray, sizes: FloatArray, n: int) -> FloatArray:
    """Cosines of K - tr(K)/(n-1) H, from those of K."""
    share = n * n / (n - 1.0)  # tr(K_m) tr(K_l) / (n - 1)
    products = A * np.outer(sizes, sizes) - share
    left = np.sqrt(np.maximum(products.diagonal(), 1e-300))
    return np.asarray(products / np.outer(left, left))


#: the norms compared
NORMS = (1.0, 4.0 / 3.0, 2.0, 4.0, np.inf)

#: factor of the estimated number of informative kernels, chosen by experiments/suggestion_accuracy.py
FACTOR = 1.0

#: the signal of all kernels, in standard deviations of chance, that counts even if no kernel stands out
FAINT = 2.0

#: greedy selection: kernels at least, informative ones at least, and share of them that must differ
MANY, SEVERAL, DIFFERENT = 10, 1.5, 0.5

#: costs within this share of one another are the same
TIE = 1e-3

FEWEST_SAMPLES = 8


@dataclass(frozen=True, repr=False)
class Suggestion:
    """What to try first, and why.

    Attributes
    ----------
    method : {"sparse", "non-sparse", "greedy", "uniform"}
    estimator : str
        Name of the estimator.
    regularizer : Regularizer
        For "greedy", the best choice among convex models, to compare with.
    p : float
        The norm of `regularizer`.
    n_kernels : int or None
        Kernels to select, for "greedy".
    reasons : list of str
    evidence : dict
        "alignment" and "by_chance" (name -> number), "strength" (name -> number), "signal" (of all
        kernels together), "peak" and "chance_peak" (of the strongest), "informative", "different",
        "cost" (p -> number), "n_kernels", "n_samples".
    """

    method: str
    estimator: str
    regularizer: Regularizer
    p: float
    n_kernels: int | None
    reasons: list[str]
    evidence: dict[str, Any]

    @property
    def code(self) -> str:
        """The estimator as it would be written."""
        if self.method == "greedy":
            return f"{self.estimator}(kernels, n_kernels={self.n_kernels})"
        written = "Uniform()" if np.isinf(self.p) else f"LpNorm(p={Fraction(self.p).limit_denominator(9)})"
        return f"{self.estimator}(kernels, regularizer={written})"

    def __repr__(self) -> str:
        return "\n".join([f"try first: {self.method}, {self.code}", *(f"  - {why}" for why in self.reasons)])


def suggest(
    kernels: Any, X: Any, y: Any, task: str = "auto", max_samples: int = 1000, random_state: int = 0
) -> Suggestion:
    """Say which method to try first, from alignments alone.

    The strength of a kernel is <K_m, Y Y'> beyond what shuffled targets give, and the number of
    informative kernels is

        k = (sum_m strength_m)^2 / sum_m strength_m^2

    with the squares estimated from products over different samples, so that noise does not add to
    them. If k kernels share the target evenly, the block norm that lp-norm MKL needs for it is
    proportional to k^(1/(2p)), and by the bounds of Kloft et al. (2011), section 5, what counts for
    the error is

        cost(p) = k^(1/(2p)) R_p,   R_p the empirical Rademacher complexity for ||d||_p <= 1

    The p of smallest cost is suggested: p = 1 when few of many kernels carry the target, p = inf when
    most do. How often that p is among the best is measured in the guide, "Theory".

    Parameters
    ----------
    kernels, X
        As in the estimators: kernels and data, or "precomputed" and matrices.
    y : array-like of shape (n,) or (n, c)
    task : {"auto", "classification", "regression"}, default="auto"
        What y is; "auto" treats integers and text as classes.
    max_samples : int, default=1000
        Larger samples are thinned to this size.
    random_state : int, default=0

    Returns
    -------
    suggestion : Suggestion

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.kernels import Linear, per_feature
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 30))
    >>> suggest(per_feature(Linear()), X, X[:, 0] + 0.3 * rng.normal(size=200)).method
    'sparse'
    >>> suggest(per_feature(Linear()), X, X.sum(axis=1) > 0).method
    'uniform'
    """
    check_count("max_samples", max_samples, 2**63)
    X, y = _thinned(kernels, X, y, max(max_samples, FEWEST_SAMPLES), random_state)
    found = dictionary(kernels, X, "center")
    gram = found.gram
    if gram.n_samples < FEWEST_SAMPLES:
        raise ValueError(f"X has {gram.n_samples} samples: a suggestion needs at least {FEWEST_SAMPLES}.")
    signal = measure(gram, target_matrix(y, gram.n_samples, task), seed=random_state)
    names = [found.names[m] for m in found.live]
    kind = "Classifier" if is_classification(np.asarray(y), task) else "Regressor"
    return _decided(names, signal, gram.n_samples, kind)


def _thinned(kernels: Any, X: Any, y: Any, size: int, seed: int) -> tuple[Any, Any]:
    """At most `size` samples, drawn at random."""
    given = isinstance(kernels, str) and kernels == "precomputed"
    table = as_stack(X) if given else as_table(as_views(X, y))
    n = table.shape[0]
    if n <= size or np.shape(y)[:1] != (n,):  # a y of another length is refused later
        return table, y
    rows = np.sort(np.random.default_rng(seed).permutation(n)[:size])
    part = table[np.ix_(rows, rows)] if isinstance(table, KernelStack) else _safe_indexing(table, rows)
    return part, np.asarray(y)[rows]


def informative_number(signal: Signal) -> float:
    """k = (sum of strengths)^2 / sum of squared strengths, from 1 to M; M when there is no signal."""
    M, total, squares = len(signal.strength), float(signal.strength.sum()), float(signal.square.sum())
    if total <= 0.0:
        return float(M)
    return float(np.clip(total**2 / max(squares, total**2 / M), 1.0, M))


def norm_costs(signal: Signal, k: float) -> FloatArray:
    """k^(1/(2p)) R_p for the norms compared, as shares of the smallest."""
    costs = [
        max(FACTOR * k, 1.0) ** (0.5 / p) * float(suprema_of(LpNorm(p), signal.quads).mean()) for p in NORMS
    ]
    result: FloatArray = np.array(costs) / min(costs)
    return result


def _decided(names: list[str], signal: Signal, n: int, kind: str) -> Suggestion:
    M, k = len(names), informative_number(signal)
    costs, different = norm_costs(signal, k), effective_number(signal.cosines)
    best = float(NORMS[int(np.flatnonzero(costs <= 1.0 + TIE).max())])
    evidence = _evidence(names, signal, n, k, different, costs)
    if is_flat(evidence):
        best = np.inf
    greedy = best < 2.0 and M >= MANY and k >= SEVERAL and different >= DIFFERENT * M
    method = "greedy" if greedy else {1.0: "sparse", np.inf: "uniform"}.get(best, "non-sparse")
    return Suggestion(
        method,
        f"GroupOMP{kind}" if greedy else f"MKL{kind}",
        Uniform() if np.isinf(best) else LpNorm(p=best),
        best,
        max(1, round(k)) if greedy else None,
        _reasons(method, evidence, best),
        evidence,
    )


def _evidence(
    names: list[str], signal: Signal, n: int, k: float, different: float, costs: FloatArray
) -> dict[str, Any]:
    def named(values: FloatArray) -> dict[str, float]:
        return dict(zip(names, values.tolist(), strict=True))

    return {
        "n_samples": n,
        "n_kernels": len(names),
        "alignment": named(signal.alignment),
        "by_chance": named(signal.by_chance),
        "strength": named(signal.strength),
        "signal": signal.z,
        "peak": signal.peak,
        "chance_peak": signal.chance_peak,
        "informative": k,
        "different": different,
        "cost": dict(zip(NORMS, costs.tolist(), strict=True)),
    }


def is_flat(evidence: dict[str, Any]) -> bool:
    """Whether there is nothing to weigh: one kernel, or neither all together nor one of them above chance."""
    faint = evidence["signal"] < FAINT and evidence["peak"] <= evidence["chance_peak"]
    result: bool = faint or evidence["n_kernels"] == 1
    return result


def _reasons(method: str, evidence: dict[str, Any], p: float) -> list[str]:
    M, k = evidence["n_kernels"], evidence["informative"]
    if M == 1:
        return ["there is one kernel that varies, so there is nothing to weigh"]
    if is_flat(evidence):
        faint = f"alignment with the target is {evidence['signal']:.1f} standard deviations above chance"
        return [f"{faint} and no kernel stands out: too little to tell the {M} kernels apart"]
    top = max(evidence["alignment"], key=evidence["alignment"].__getitem__)
    said = [
        f"about {k:.1f} of {M} kernels carry the target, {top!r} most "
        f"(alignment {evidence['alignment'][top]:.2f}, {evidence['by_chance'][top]:.2f} by chance)",
        f"the {M} kernels amount to {evidence['different']:.1f} different ones",
        f"by the complexity bound, {_compared(evidence['cost'], p)}",
    ]
    return [*said, _ADVICE[method]]


def _compared(costs: dict[float, float], p: float) -> str:
    rest = {q: costs[q] for q in (1.0, 2.0, np.inf) if q != p}
    others = ", ".join(f"p={q:g} costs {100 * (cost / costs[p] - 1):.0f} % more" for q, cost in rest.items())
    return f"p={p:.3g} is best: {others}"


_ADVICE = {
    "sparse": "a selection suffices; SMKL() selects more strictly still",
    "non-sparse": "turn some kernels down and none off; let cross-validation over p confirm it",
    "greedy": "several kernels that differ: take one after another, and compare with `regularizer`",
    "uniform": "most kernels help: weigh them equally",
}
