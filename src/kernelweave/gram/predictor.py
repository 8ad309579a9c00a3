"""What a fit leaves behind to predict with: kernels, training rows, coefficients, variances."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from .._backend import resolve_device
from .._typing import FloatArray, IntArray
from ..kernels import RBF, Kernel, ParametricKernel
from ..kernels.base import as_numeric
from ..kernels.columns import as_table, is_sparse, take_columns
from .games import Expansion, NotByFeatureError, check_by_feature, constant_diagonal
from .missing import GapFactorTerm, GapSource, GapTerm, IndicatorTerm
from .sharing import Batch, SharedSquares
from .sources import FeatureSource, KernelSource, ParametricSource, StackSource
from .tables import Table
from .terms import TERMS, KernelTerm, NotLinearError, SumTerm, checked, demand

#: terms by their names in files
KINDS: dict[str, Any] = {**TERMS, "gap": GapTerm, "indicator": IndicatorTerm, "gap factor": GapFactorTerm}


class Spread(NamedTuple):
    """What the variance of a Gaussian process needs from its posterior, besides the kernels.

    With S = root, B = L L' and R = S B^-1 S,

        variance  k(x, x) - k(x)' R k(x)  [+ (1 - 1' R k(x))^2 / 1' R 1  for an intercept]

    Attributes
    ----------
    L : ndarray of shape (n, n)
        Lower triangular.
    root : ndarray of shape (n,)
    ones : ndarray of shape (n,) or None
        R 1; None without an intercept.
    noise : float
        Variance of the noise.
    """

    L: FloatArray
    root: FloatArray
    ones: FloatArray | None
    noise: float

    def variance(self, cross: FloatArray, prior: FloatArray) -> FloatArray:
        """Variance of the latent function, intercept included.

        Parameters
        ----------
        cross : ndarray of shape (n_new, n)
            sum_m d_m k_m(x, x_i).
        prior : ndarray of shape (n_new,)
            sum_m d_m k_m(x, x).
        """
        half = solve_triangular(self.L, (cross * self.root).T, lower=True, check_finite=False)
        variance = prior - np.einsum("ij,ij->j", half, half)
        if self.ones is not None:
            variance = variance + (1.0 - cross @ self.ones) ** 2 / self.ones.sum()
        return np.asarray(np.maximum(variance, 0.0))


class Later:
    """A value that is computed when it is first asked for, once, whichever thread asks.

    Parameters
    ----------
    compute : callable
        Forgotten once it has been called, together with all it refers to.

    Examples
    --------
    >>> value = Later(lambda: print("computed") or 3)
    >>> value(), value()
    computed
    (3, 3)
    """

    def __init__(self, compute: Callable[[], Any]) -> None:
        self._compute: Callable[[], Any] | None = compute
        self._lock = Lock()

    def __call__(self) -> Any:
        with self._lock:
            if self._compute is not None:
                self._value, self._compute = self._compute(), None
        return self._value


class Predictor:
    """The functions that a fit has learned, ready to evaluate on new data.

        f_j(x) = b_j + sum_m f_jm(x),    f_jm(x) = d_jm sum_i alpha_ij k_m(x, x_i)

    with normalised kernels k_m, or with their features, f_jm(x) = z_m(x)'w_jm. For a ball, whose values are
    squares of distances, d_jm k_m(x, x) / 2 is subtracted from every f_jm(x). A predictor holds the kernels
    with a weight and the training rows with a coefficient. It evaluates new data in blocks of rows whose
    kernel values take at most `block_bytes`. A greedy path is a predictor of several stages, of which one is
    chosen.

    Parameters
    ----------
    source : KernelSource
        The fitted kernels and the training rows.
    terms : list of KernelTerm, SumTerm or FactorTerm
    alpha : ndarray of shape (n_rows, n_stages * n_outputs)
    intercepts : ndarray of shape (n_stages * n_outputs,)
    n_stages : int, default=1
    stage : int, default=0
        The chosen stage.
    shares : ndarray of shape (n_stages,), optional
        Share of every stage, if the functions are sums over all stages: f = sum_s shares[s] f_s.
    posterior : sequence of Spread, optional
        Of every model, needed for variances.
    rows : ndarray of int, optional
        Training rows that the posterior refers to; all by default.
    link : callable or Later, optional
        From values to probabilities.
    device : str, optional
        Where values are computed; with NumPy by default, and if that device is missing.
    ball : bool, default=False
        Whether d_jm k_m(x, x) / 2 is subtracted; for kernels whose normalisation does not centre them.

    Examples
    --------
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import RBF, Linear
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = kw.MKLRegressor([RBF(), Linear()]).fit(X, X[:, 0]).model_
    >>> parts = model.components(X)
    >>> parts.shape, bool(np.allclose(parts.sum(axis=2).T + model.intercept, model(X)))
    ((1, 30, 2), True)
    """

    block_bytes = 1 << 26
    _link: Any

    def __init__(
        self,
        source: KernelSource,
        terms: list[Any],
        alpha: FloatArray,
        intercepts: FloatArray,
        *,
        n_stages: int = 1,
        stage: int = 0,
        shares: FloatArray | None = None,
        posterior: Sequence[Spread] = (),
        rows: IntArray | None = None,
        link: Any = None,
        device: str | None = None,
        ball: bool = False,
    ) -> None:
        self.source, self.terms, self.alpha, self.intercepts = source, terms, alpha, intercepts
        self.n_stages, self.stage, self.shares = n_stages, stage, shares
        self.posterior, self.rows, self.link, self.device = list(posterior), rows, link, device
        self.ball = ball

    @classmethod
    def of(
        cls, source: KernelSource, terms: list[Any], alpha: FloatArray, intercepts: FloatArray, **options: Any
    ) -> Predictor:
        """A predictor that keeps only the training samples it needs; `source` is not changed."""
        used = np.full(len(alpha), bool(options.get("posterior")))  # centring needs all of them
        for term in terms:
            used |= term.used(alpha)
        support = np.flatnonzero(used) if used.any() else np.arange(1)
        own = [term.restrict(support) for term in terms]
        source = copy(source)
        source.restrict(support)
        return cls(source, own, alpha[support], intercepts, **options)

    @property
    def link(self) -> Any:
        """From values to probabilities; a link that was put off until needed is computed now."""
        if isinstance(self._link, Later):
            self._link = self._link()
        return self._link

    @link.setter
    def link(self, link: Any) -> None:
        self._link = link

    def __getstate__(self) -> dict[str, Any]:
        return {**{name: value for name, value in vars(self).items() if name != "_link"}, "link": self.link}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)

    # -- values ---------------------------------------------------------------------------------

    @property
    def torch_device(self) -> Any:
        """The torch device that `device` names; None for NumPy, and if that device is missing."""
        try:
            return resolve_device("torch:cpu" if self.device == "cpu" else self.device)
        except (ImportError, ValueError):
            return None

    @property
    def intercept(self) -> FloatArray:
        """b of every function, shape (n_outputs,)."""
        return np.asarray(self._mix @ self.intercepts.reshape(self.n_stages, -1))

    @property
    def _mix(self) -> FloatArray:
        """Factors of the stages: the shares, or 1 for the chosen stage."""
        return np.eye(self.n_stages)[self.stage] if self.shares is None else self.shares

    def __call__(self, X: Any) -> FloatArray:
        """Values of the functions on new data, shape (n_new, n_outputs)."""
        stages = np.flatnonzero(self._mix).tolist()
        return np.asarray(np.einsum("nsc,s->nc", self.staged(X, stages), self._mix[stages]))

    def staged(self, X: Any, stages: Sequence[int] | None = None) -> FloatArray:
        """Values at all stages of a path, or some of them; shape (n_new, len(stages), n_outputs)."""
        stages = range(self.n_stages) if stages is None else stages
        if isinstance(X, Table):
            return X.map(partial(self.staged, stages=stages))
        return self.at(stages)._values(X).reshape(X.shape[0], len(stages), len(self.intercept))

    def at(self, stages: Sequence[int]) -> Predictor:
        """The predictor with some of its stages only."""
        if list(stages) == list(range(self.n_stages)):
            return self
        functions = np.arange(len(self.intercepts)).reshape(self.n_stages, -1)[list(stages)].ravel()
        terms = [term.take(functions) for term in self.terms]
        live = [term for term in terms if term.factors.any()]
        found = (self.alpha[:, functions], self.intercepts[functions])
        return Predictor(self.source, live, *found, n_stages=len(stages), ball=self.ball)

    def _values(self, X: Any) -> FloatArray:
        terms, device, out = self.terms, None, np.zeros((X.shape[0], len(self.intercepts)))
        if self.device is not None:
            from .torch.predict import DeviceTerms

            device = DeviceTerms.of(self)
        if device is not None:
            terms, out = [*device.groups, *device.rest], out + device.offset

        def fill(rows: slice, block: Any) -> None:
            for term in terms:
                term.add(self.source, self.alpha, block, out[rows])
                if self.ball:
                    out[rows] -= 0.5 * term.diagonal(self.source, block)

        self._in_blocks(X, fill, self.source.held, None if device is None else device.block_rows)
        return out + self.intercepts

    def components(self, X: Any) -> FloatArray:
        """What each kernel adds, shape (n_outputs, n_new, M); their sum is the value less the intercept."""
        if self.shares is not None:
            stages = np.flatnonzero(self.shares).tolist()
            return np.asarray(sum(self.shares[s] * self.at([s]).components(X) for s in stages))
        chosen = self.at([self.stage])
        parts = list(chosen._parts())
        out = np.zeros((len(chosen.intercepts), X.shape[0], len(self.source.names)))

        def fill(rows: slice, block: Any) -> None:
            for m, term in parts:
                term.add(self.source, chosen.alpha, block, out[:, rows, m].T)
                if self.ball:
                    out[:, rows, m] -= 0.5 * term.diagonal(self.source, block).T

        self._in_blocks(X, fill, self.source.held)
        return out

    def _parts(self) -> Iterator[tuple[int, Any]]:
        """Each kernel that takes part in a function, and its own term."""
        for term in self.terms:
            yield from term.split(self.source)

    def expansions(self) -> dict[int, list[Expansion] | NotByFeatureError]:
        """What every kernel adds, up to a constant, as expansions in functions of columns; or why not.

        For kernels that samples may lack, this is what they add on samples that have them.
        """
        found: dict[int, dict[int, Expansion]] = {}
        refused: dict[int, NotByFeatureError] = {}
        alone = len(self.source.names) == 1  # also for a learned kernel, which has no components
        for s in np.flatnonzero(self._mix).tolist():
            chosen = self.at([s])
            for m, term in ((0, term) for term in chosen.terms) if alone else chosen._parts():
                try:
                    part = term.expansion(self.source, chosen.alpha)
                    self._check_expansion(part)
                except NotByFeatureError as reason:
                    refused[m] = reason
                    continue
                own, coef = found.setdefault(m, {}), self._mix[s] * part.coef
                key = getattr(term, "m", m)
                own[key] = replace(part, coef=coef + own[key].coef if key in own else coef)
        return {m: list(own.values()) for m, own in found.items()} | refused

    def _check_expansion(self, part: Expansion) -> None:
        """Raise `NotByFeatureError` unless a part of a function can be attributed to features."""
        check_by_feature(part.kernel)
        if self.ball and constant_diagonal(part.kernel) is None:
            raise NotByFeatureError("half of k(x, x) is subtracted, which is not an expansion")

    def variance(self, X: Any) -> FloatArray:
        """Posterior variances of every model on new data, shape (n_new, n_models), without the noise."""
        return self.moments(X)[1]

    def moments(self, X: Any) -> tuple[FloatArray, FloatArray]:
        """Values and variances, from the same kernel values."""
        if not self.posterior:
            raise ValueError("the model has no posterior, so its values have no variance.")
        n, J = X.shape[0], len(self.posterior)
        models = np.array_split(np.arange(len(self.intercepts)), J)
        values, variances = np.empty((n, len(self.intercepts))), np.empty((n, J))
        alpha = self.alpha if self.rows is None else self.alpha[self.rows]

        def fill(part: slice, block: Any) -> None:
            crosses, priors = self._covariances(block, [own[0] for own in models], len(alpha))
            for j, own in enumerate(models):
                values[part, own] = crosses[j] @ alpha[:, own] + self.intercepts[own]
                variances[part, j] = self.posterior[j].variance(crosses[j], priors[j])

        self._in_blocks(X, fill, J + 2)
        return values, variances

    def _covariances(self, X: Any, functions: list[int], n: int) -> tuple[FloatArray, FloatArray]:
        """sum_m d_m k_m(x, x_i), for n training rows, and sum_m d_m k_m(x, x) of some functions."""
        crosses = np.zeros((len(functions), X.shape[0], n))
        priors = np.zeros(crosses.shape[:2])
        for term in self.terms:
            K, diag = self.source.cross(term.m, X), self.source.diag(term.m, X)
            cross, factors = term.rule.cross(K, diag), term.factors[functions]
            cross = cross if self.rows is None else cross[:, self.rows]
            for j in np.flatnonzero(factors):
                crosses[j] += factors[j] * cross
            priors += np.multiply.outer(factors, term.rule.diag(diag, K))
        return crosses, priors

    def _in_blocks(
        self, X: Any, fill: Callable[[slice, Any], None], matrices: int = 1, most: int | None = None
    ) -> None:
        """Call ``fill(rows, block)`` on blocks of new rows.

        The size of a block follows from the number of its matrices of kernel values, or is `most` rows.
        """
        widths = [term.features.map.rank for term in self.terms if hasattr(term, "features")]
        width = max([len(self.alpha), *widths])
        step = max(1, self.block_bytes // (8 * width * matrices) if most is None else most)
        for start in range(0, X.shape[0], step):
            rows = slice(start, min(start + step, X.shape[0]))
            fill(rows, self.source.rows(X, rows))

    def affine(self) -> tuple[FloatArray, FloatArray]:
        """W and c of f(x) = x'W + c + b; `NotLinearError` where a kernel is not linear in x."""
        if not isinstance(self.source, FeatureSource):
            raise NotLinearError("the kernels are precomputed matrices, which have no columns")
        if self.ball:
            raise NotLinearError("the square of a distance is not linear")
        if self.shares is not None:
            found = [self.at([s]).affine() for s in range(self.n_stages)]
            W, c = (np.asarray([part[k] for part in found]) for k in (0, 1))
            return np.tensordot(self.shares, W, 1), self.shares @ c
        chosen = self.at([self.stage])
        c = np.zeros(len(chosen.intercepts))
        W = np.zeros((as_table(self.source.X).shape[1], len(c)))
        for term in chosen.terms:
            part = term.affine(self.source, chosen.alpha)
            W += part[0]
            c += part[1]
        return W, c

    # -- storage --------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything that the predictor is restored from: arrays, numbers, text and fitted kernels.

        Only the kernels with a weight are included, by their numbers.
        """
        sums = [term for term in self.terms if isinstance(term, SumTerm)]
        together = np.unique(np.concatenate([term.kernels for term in sums])) if sums else None
        terms = [_renumbered(term, together) for term in self.terms]
        kinds = {cls: kind for kind, cls in KINDS.items()}
        return {
            **source_state(self.source, {term.m for term in self.terms if hasattr(term, "m")}, together),
            "terms": [(kinds[type(term)], term.state()) for term in terms],
            "alpha": self.alpha,
            "intercepts": self.intercepts,
            "stages": (int(self.n_stages), int(self.stage)),
            "shares": self.shares,
            "posterior": [_packed(one) for one in self.posterior],
            "posterior_rows": self.rows,
            "link": self.link,
            "device": self.device,
            "ball": self.ball,
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Predictor:
        """The predictor of a `state`; `ValueError` where its parts do not fit together."""
        source, rows = source_of(state)
        intercepts = checked(state["intercepts"], "f", (None,))
        alpha = checked(state["alpha"], "f", (rows, len(intercepts)))
        terms = [KINDS[kind].from_state(own, source, alpha.shape) for kind, own in state["terms"]]
        n_stages, stage = state["stages"]
        demand(type(n_stages) is int and type(stage) is int, "its stages are not numbers")
        fits = 0 <= stage < n_stages <= len(intercepts) and len(intercepts) % n_stages == 0
        plain = all(type(term) is KernelTerm for term in terms)
        one_sum = n_stages == 1 or state["shares"] is not None
        demand(fits and (plain or one_sum), "it has no such stage")
        shares = None if state["shares"] is None else checked(state["shares"], "f", (n_stages,))
        made: dict[int, Any] = {}
        posterior = [_unpacked(one, made) for one in state["posterior"]]
        chosen = state["posterior_rows"]
        if posterior:
            n = len(posterior[0].root)
            inside = n == len(alpha) if chosen is None else _inside(checked(chosen, "i", (n,)), len(alpha))
            demand(inside, "its posterior refers to training rows that are not there")
            demand(all(len(one.root) == n for one in posterior), "its posteriors differ in size")
            demand(len(intercepts) % len(posterior) == 0, "its posteriors are not those of its models")
            demand(plain, "its posterior has no kernels")
        device, link = state["device"], state["link"]
        known = device is None or (type(device) is str and re.fullmatch(r"[a-z]{2,8}(:\d{1,3})?", device))
        demand(known, f"it names the device {device!r:.40}, which does not exist")
        demand(link is None or callable(link), "its link is not a function")
        ball = state["ball"]
        demand(type(ball) is bool and not (ball and posterior), "it is not a ball")
        options: dict[str, Any] = {"n_stages": n_stages, "stage": stage, "shares": shares, "ball": ball}
        options["posterior"] = posterior
        return cls(source, terms, alpha, intercepts, rows=chosen, link=link, device=device, **options)


def _inside(positions: IntArray, size: int) -> bool:
    return len(positions) > 0 and bool(0 <= positions.min() <= positions.max() < size)


def _renumbered(term: Any, together: IntArray | None) -> Any:
    """A sum of kernels by their numbers among those that are stored."""
    if not isinstance(term, SumTerm):
        return term
    assert together is not None
    return SumTerm(np.searchsorted(together, term.kernels), term.factors, term.coef, term.offsets)


def _packed(posterior: Spread) -> tuple[Any, ...]:
    """The posterior, with the lower triangle of the factor."""
    L, root, ones, noise = posterior
    order = "C" if L.flags.c_contiguous else "F"
    return order, np.concatenate([row[: i + 1] for i, row in enumerate(L)]), root, ones, float(noise)


def _unpacked(state: Any, made: dict[int, Any]) -> Spread:
    """The posterior of a state; factors from the same array are the same array."""
    order, lower, root, ones, noise = state
    n = len(checked(root, "f", (None,)))
    checked(lower, "f", (n * (n + 1) // 2,))
    if id(lower) not in made:
        L = np.zeros((n, n), dtype=lower.dtype, order="C" if order == "C" else "F")
        for i in range(n):
            L[i, : i + 1] = lower[i * (i + 1) // 2 : (i + 1) * (i + 2) // 2]
        made[id(lower)] = L
    ones = None if ones is None else checked(ones, "f", (n,))
    return Spread(made[id(lower)], root, ones, float(noise))


# -- sources ----------------------------------------------------------------------------------


def source_state(source: Any, kernels: set[int], together: IntArray | None) -> dict[str, Any]:
    """A source with the training rows it still has, and some of its kernels."""
    state: dict[str, Any] = {"names": list(source.names), "n_samples": int(source.n_samples)}
    state |= dict.fromkeys(("rows", "columns", "parameters", "batch", "gaps"))
    if isinstance(source, GapSource):  # kernels of other views complete a view
        every = set(range(len(source.views)))
        held = every if source.completes else kernels & every
        return {**source_state(source.source, held, together), "gaps": source.state()}
    if isinstance(source, StackSource):
        return {**state, "columns": source.support, "kernels": {}}
    if isinstance(source, ParametricSource):
        return {**state, "rows": source.X, "parameters": source.parameters, "kernels": {0: source.kernel}}
    demand(type(source) is FeatureSource, f"kernel values come from a {type(source).__name__}")
    if together is not None:
        batch = source._batch
        part, own = batch.part, (batch.members[together], batch.columns)
        state["batch"] = (*own, part.subsets[together], part.gammas[together])
    return {**state, "rows": source.X, "kernels": {int(m): source.kernels[m] for m in sorted(kernels)}}


def source_of(state: dict[str, Any]) -> tuple[Any, int]:
    """A source that evaluates the kernels of a state, and cannot train; the number of its training rows."""
    if state["gaps"] is not None:
        base, rows = source_of({**state, "gaps": None})
        return GapSource.from_state(state["gaps"], base, rows), rows
    names, n, X, kernels = (state[name] for name in ("names", "n_samples", "rows", "kernels"))
    demand(type(names) is list and type(n) is int and type(kernels) is dict, "its kernels make no sense")
    source: Any
    if state["columns"] is not None:
        source = object.__new__(StackSource)
        source.names, source.n_samples, source._stack = names, n, None
        source.support = checked(state["columns"], "i", (None,))
        return source, len(source.support)
    demand(len(getattr(X, "shape", ())) == 2, "its training rows are not a table")
    if state["parameters"] is not None:
        kernel = kernels[0]
        demand(isinstance(kernel, ParametricKernel), "its kernel has no parameters")
        parameters = checked(state["parameters"], "f", (None, len(kernel.initial_)))
        source = ParametricSource(kernel, parameters, X)
        source.n_samples = n
        demand(source.names == names, "its kernels have other names")
        return source, X.shape[0]
    fits = all(type(m) is int and 0 <= m < len(names) and isinstance(k, Kernel) for m, k in kernels.items())
    demand(fits, "its kernels are not among those of the fit")
    source = object.__new__(FeatureSource)
    source.names, source.n_samples, source.X, source._batch = names, n, X, None
    source.kernels = LiveKernels(len(names), kernels)
    if state["batch"] is not None:
        source._batch = source.kernels.batch = _batch_of(state["batch"], X, len(names))
    return source, X.shape[0]


def _batch_of(state: Any, X: Any, size: int) -> Batch:
    """Kernels that are computed together, on the training rows."""
    members, columns, bits, gammas = state
    table = as_table(X)
    demand(not is_sparse(table), "kernels on sparse rows are not computed together")
    checked(columns, "i", (None,))
    inside = _inside(columns, table.shape[1]) and (np.diff(columns) > 0).all()
    demand(inside, "a kernel sees columns that are not there")
    K = len(checked(members, "i", (None,)))
    checked(bits, "u", (K, -(-len(columns) // 8)))
    checked(gammas, "f", (K,))
    demand(_inside(members, size) and (np.diff(members) > 0).all(), "it weighs kernels that are not there")
    # bits beyond the columns would make compiled loops read beyond their tables
    demand(bits.dtype == np.uint8, "a kernel sees columns that are not there")
    beyond = np.unpackbits(bits, axis=1, bitorder="little")[:, len(columns) :]
    demand(not beyond.any(), "a kernel sees columns that are not there")
    return Batch(SharedSquares(as_numeric(take_columns(table, columns)), bits, gammas), members, columns)


class LiveKernels(Sequence[Any]):
    """The kernels with weight of a loaded model, at their places among all kernels; None elsewhere.

    Kernels that are computed together are made from the bits of their columns when they are asked for.

    Parameters
    ----------
    size : int
        Number of kernels of the fit.
    kept : dict of int to Kernel

    Examples
    --------
    >>> from kernelweave.kernels import Linear
    >>> list(LiveKernels(3, {1: Linear()}))
    [None, Linear(), None]
    """

    def __init__(self, size: int, kept: dict[int, Kernel]) -> None:
        self.size, self.kept = size, kept
        self.batch: Batch | None = None

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, m: Any) -> Any:
        if isinstance(m, slice):
            return [self[k] for k in range(*m.indices(self.size))]
        m = range(self.size)[m]
        return self.kept[m] if m in self.kept else self._together(m)

    def _together(self, m: int) -> RBF | None:
        if self.batch is None:
            return None
        k = int(np.searchsorted(self.batch.members, m))
        if k == len(self.batch.members) or self.batch.members[k] != m:
            return None
        mask = np.unpackbits(self.batch.part.subsets[k], count=len(self.batch.columns), bitorder="little")
        kernel = RBF(float(self.batch.part.gammas[k]), columns=self.batch.columns[mask > 0].tolist())
        kernel.columns_, kernel.gamma_ = self.batch.columns[mask > 0], float(self.batch.part.gammas[k])
        return kernel
