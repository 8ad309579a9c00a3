"""The kernels of one fit: their training matrices, normalised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np

from .._typing import FloatArray, IntArray
from .._warnings import warn_of_samples
from ..kernels import Normalization, resolve_normalization
from ..kernels.base import largest_size
from ..kernels.precomputed import NOTHING, Along, Scan, as_square, look_at, look_at_all
from .blocks import Blocks
from .choice import Task, choose_engine, parse_memory
from .predictor import Predictor
from .sources import KernelSource, without
from .terms import kernel_terms

__all__ = ["Dictionary", "check_kernel_matrix", "parse_memory"]

#: from this many kernels computed together on, no engine that keeps them is faster
LIGHT = 2000

#: work spent on testing whether given matrices are positive semidefinite, for all kernels together
PSD_FLOPS = 1e8

#: advice for a matrix in double precision that is indefinite
ROUNDED = "If it was rounded to single precision, give it as float32."

#: up to this share of kernels with weight, a machine is trained on their sum before the others are read
FEW_WEIGHTS = 0.3


class Guess(NamedTuple):
    """Weights that a solver will most likely begin with, found before all of the matrices were read.

    Attributes
    ----------
    norms, weights : ndarray of shape (M,)
        Component norms, and their weights.
    newton : ndarray of shape (M, M), optional
        Newton's matrix of the solver.
    scales : ndarray of shape (M,), optional
        Scales of the kernels that these are for; None: those of the engine.
    matrix : ndarray of shape (n, n), optional
        sum_m d_m K_m.
    n_passes : float
        Passes over the kernels that it took.
    start : State, optional
        The solver's iterate at these weights, which knows the kernels with weight only.
    n_machines : int
        How many machines it took.
    squares : ndarray of shape (M,), optional
        alpha'K_m alpha of all kernels at that iterate.
    """

    norms: FloatArray
    weights: FloatArray
    newton: FloatArray | None = None
    scales: FloatArray | None = None
    matrix: FloatArray | None = None
    n_passes: float = 0.0
    start: Any = None
    n_machines: int = 1
    squares: FloatArray | None = None

    def at(self, scales: FloatArray) -> Guess:
        """The same functions and the same sum for kernels of other scales."""
        ratio = np.asarray(self.scales) / scales
        return self._replace(norms=self.norms * np.sqrt(ratio), weights=self.weights * ratio, scales=scales)


class Kernels:
    """The kernels of a fit in the form in which an engine receives them.

    Parameters
    ----------
    source : KernelSource
    normalize : str, Normalization or None
    sample_weight : ndarray of shape (n,), optional
    check : bool, default=True
        Whether values are checked.
    first : ndarray of int, optional
        Samples on which a solver takes a first look.
    foresee : Foresight, optional
        Tells with which weights a solver will begin, from matrices that are not yet checked.

    Attributes
    ----------
    diagonals, parts : dict of int to ndarray
        Of the matrices that were checked: the diagonal, and the lower triangle between the `first` samples.
    squares : dict of int to float
        Of those that were checked after the first machine was trained: alpha'K alpha.
    """

    def __init__(
        self,
        source: KernelSource,
        normalize: Any,
        sample_weight: FloatArray | None = None,
        check: bool = True,
        first: IntArray | None = None,
        foresee: Any = None,
    ) -> None:
        if sample_weight is not None and (sample_weight == 1.0).all():
            sample_weight = None
        self.source, self.normalize, self.sample_weight, self.check = source, normalize, sample_weight, check
        self._rule, self.first, self.foresee = resolve_normalization(normalize), first, foresee
        self._looks: list[Scan] = []
        self._found: dict[int, Normalization] = {}
        self._alpha: FloatArray | None = None
        self.diagonals: dict[int, FloatArray] = {}
        self.parts: dict[int, FloatArray] = {}
        self.squares: dict[int, float] = {}

    @cached_property
    def _room(self) -> FloatArray:
        """Memory for all parts: one array, as its memory comes in large pages."""
        side = 0 if self.first is None else len(self.first)
        return np.empty((len(self.source.names), side, side))

    def checked(self) -> Blocks:
        """All kernels a tile at a time, neither normalised nor scaled, after a check on some samples."""
        raw = self.source.blocks()
        if self.check and not all(part.positive for part in raw.parts):
            check_parts(self.source, raw)
        return raw

    def normalised(self, m: int, K: FloatArray) -> Normalization:
        """The normalisation of kernel m, fitted in the same pass that checks its matrix."""
        if m in self._found:
            return self._found[m]
        rule = copy(self._rule)
        if not self.check or self.source.is_positive(m):
            return rule.fit(K, self.sample_weight)
        along, look = NOTHING, self._looks[m] if self._looks else None
        if self._alpha is not None:
            along = Along(alpha=self._alpha)
        elif look is None and self.first is not None:
            along = Along(self.first, self._room[m])
            self.parts[m] = along.part
        seen = check_values(self.source, m, K, lambda seen: rule.fit(seen, self.sample_weight), along, look)
        self.diagonals[m], self.squares[m] = seen.diagonal(), seen.square
        return rule

    def guess(self, matrices: Sequence[FloatArray], engine: Any) -> Guess | None:
        """What a solver will most likely ask for first, made in the pass that checks, or before it.

        Looks at parts of the matrices, whose scales are those of the `first` samples, tell the weights. If
        most kernels have weight, their weighted sum is made in the pass that checks. If few have, these are
        checked first, the machine is trained on their sum, and that pass brings alpha'K alpha of the others.

        Whatever is wrong with the matrices is found in the pass that follows; so looks fail in silence, and
        a matrix that needs an error gets it as if nobody had looked.
        """
        plain = all(K.dtype == np.float64 and K.flags.forc for K in matrices)
        if self.foresee is None or self.first is None or not (self.check and plain and self._rule.is_mean):
            return None
        gram, total = engine(matrices), np.empty(matrices[0].shape)
        gram.release(total)  # parts of the matrices are in its memory before the sum is
        weight = None if self.sample_weight is None else self.sample_weight[self.first]
        with np.errstate(all="ignore"), suppress(ValueError, ArithmeticError, np.linalg.LinAlgError):
            parts = gram.subset(self.first).matrices
            gram.scales = np.array([copy(self._rule).fit(part, weight).scale_ for part in parts])
            gram.first = (self.first, parts)
            found: Guess | None = self.foresee.look(gram) if (gram.scales > 0.0).all() else None
            if found is None or not (found.weights.any() and np.isfinite(found.weights).all()):
                return None
            found = found._replace(scales=gram.scales, n_passes=gram.n_passes)
            if self.foresee.trains and np.count_nonzero(found.weights) <= FEW_WEIGHTS * len(matrices):
                return self._trained(found, matrices, engine, total)
            rows = _spread(len(matrices[0]), PSD_FLOPS / len(matrices))
            self._looks = look_at_all(gram.matrices, found.weights * gram.scales, rows, total)
            return found._replace(matrix=total)
        return None

    def _trained(
        self, guess: Guess, matrices: Sequence[FloatArray], engine: Any, room: FloatArray
    ) -> Guess | None:
        """A guess with the machine at its weights, which are those of few kernels."""
        live, scales = np.flatnonzero(guess.weights), np.array(guess.scales)
        for m in live.tolist():
            self._found[m] = self.normalised(m, matrices[m])
            scales[m] = self._found[m].scale_
        if not (scales > 0.0).all():
            return None
        guess, gram = guess.at(scales), engine([matrices[m] for m in live.tolist()], scales[live])
        gram.release(room)
        state, matrix, count = self.foresee.train(gram, live, guess)
        self._alpha = state.alpha[:, 0]
        self.squares.update(zip(live.tolist(), (state.squares / gram.scales).tolist(), strict=True))
        weights, share = all_kernels(state.weights, live, len(matrices)), len(live) / len(matrices)
        passes = guess.n_passes + share * gram.n_passes
        return guess._replace(weights=weights, matrix=matrix, start=state, n_machines=count, n_passes=passes)

    def live(self, scales: FloatArray) -> IntArray:
        """Kernels that vary over the samples; a warning about the others."""
        return with_variance(scales, self.source.names, self.source.given)


class Dictionary:
    """M kernels normalised on the training samples.

    Parameters
    ----------
    source : KernelSource
    normalize : str or None
        Name of the normalisation.
    sample_weight : ndarray of shape (n,), optional
    memory_limit : int, optional
        Bytes that the kernels and the sums of a solver may take.
    check : bool, default=True
        Whether to check the matrices; parts of matrices that were checked before need no check.
    gram : "auto" or a name in `GRAMS`, default="dense"
        The Gram engine; "auto" takes the first that can serve the fit within `memory_limit`, or by
        default the memory that is free.
    combined : bool or int, default=True
        Whether the solver asks for the weighted sum of all kernels, which then has to fit into memory too; or
        the most samples on which it does.
    device : torch.device, optional
        Where the kernels are computed, and `memory_limit` counts; with NumPy by default.
    host_sums : bool, default=False
        Whether weighted sums of the kernels come back from the device.
    double : bool, default=False
        Whether the device computes in double precision.
    first : ndarray of int, optional
        Samples on which a solver takes a first look: matrices that are checked are read for it in that pass.
    foresee : Foresight, optional
        As in `Kernels`.

    Attributes
    ----------
    gram : Gram
        The live kernels on the training samples.
    gram_reason : str
        Why this engine was chosen, in one sentence.
    live : ndarray of int
        Kernels with variance; the others get weight 0 and a warning.
    """

    def __init__(
        self,
        source: KernelSource,
        normalize: str | None,
        sample_weight: FloatArray | None = None,
        memory_limit: int | None = None,
        check: bool = True,
        gram: str = "dense",
        combined: bool | int = True,
        device: Any = None,
        host_sums: bool = False,
        double: bool = False,
        first: IntArray | None = None,
        foresee: Any = None,
    ) -> None:
        self.source, self.names, self.device = source, source.names, device
        changed = type(resolve_normalization(normalize)).train is not Normalization.train
        task = Task(
            len(self.names),
            source.n_bases,
            source.n_samples,
            n_new=len(self.names) if changed or source.copies else 0,  # given and only scaled: no new memory
            given=source.given,
            mapped=source.mapped and not changed,
            combined=combined,
            light=len(source.together) >= max(LIGHT, 0.9 * len(self.names)),
            device=device,
            host_sums=host_sums,
            double=double,
        )
        choice = choose_engine(gram, task, memory_limit)
        kernels = Kernels(source, normalize, sample_weight, check, first, foresee)
        self.gram, self.normalizations, self.live = choice.engine.build(kernels, choice)
        words = self.gram.words
        self.gram_reason = choice.reason if words is None else f"gram={gram!r} was asked for: {words}."

    def __sizeof__(self) -> int:  # a backend of joblib sends large arguments once, not with every model
        return object.__sizeof__(self) + self.gram.nbytes + 8 * self.gram.n_samples

    def all_weights(self, weights: FloatArray) -> FloatArray:
        """Weights of all kernels, from those of the live ones (..., n_live) -> (..., M)."""
        return all_kernels(weights, self.live, len(self.names))

    def predictor(self, weights: FloatArray, alpha: FloatArray, intercept: FloatArray) -> Predictor:
        """The functions f_j = sum_m weights[j, m] K_m alpha[:, j] + intercept[j], to evaluate on new data.

        Parameters
        ----------
        weights : ndarray of shape (J, M)
        alpha : ndarray of shape (n, J)
        intercept : ndarray of shape (J,)
        """
        terms = kernel_terms(self.source, self.normalizations, weights, alpha)
        device = None if self.device is None else str(self.device)
        return Predictor.of(self.source, terms, alpha, intercept, device=device)


def check_parts(source: KernelSource, blocks: Blocks) -> None:
    """`check_kernel_matrix` for kernels that are computed in blocks, on the samples it would look at."""
    rows = _spread(source.n_samples, PSD_FLOPS / len(source.names))
    # kernels computed together are positive semidefinite whatever the data
    kernels = without(np.ones(len(source.names), dtype=bool), source.together)
    doubtful = blocks.take(kernels=kernels).each(rows, rows) if len(kernels) else ()
    for k, K in doubtful:
        check_values(source, int(kernels[k]), K)


def check_values(
    source: KernelSource,
    m: int,
    K: FloatArray,
    use: Callable[[Any], Any] = lambda seen: None,
    along: Along = NOTHING,
    look: Scan | None = None,
) -> Checked:
    """`check_kernel_matrix` of kernel m while `use` reads it; overflow on sound data has its own error.

    Parameters
    ----------
    source : KernelSource
    m : int
    K : ndarray of shape (n, n)
    use : callable, optional
        Called with a `Checked` matrix, which is checked while its product with a vector is computed.
    along : Along, optional
        As in `Checked`.
    look : Scan, optional
        As in `Checked`.
    """
    try:
        seen = Checked(K, f"kernel {source.names[m]!r}", PSD_FLOPS / len(source.names), along, look)
        with np.errstate(invalid="ignore", over="ignore"):  # entries may be infinite
            use(seen)
        seen.finish()
        return seen
    except ValueError as error:
        if source.given or not np.isinf(largest_size(np.nan_to_num(K, posinf=np.inf, neginf=-np.inf))):
            raise
        raise ValueError(
            f"kernel {source.names[m]!r} overflows on X: rescale the columns (for example with "
            "StandardScaler), or choose a kernel that grows less."
        ) from error


def with_variance(scales: FloatArray, names: Sequence[str], given: bool = False) -> IntArray:
    """Kernels of positive scale; a warning about the others, an error if there are none.

    The advice is about X, or about matrices if those are `given`.
    """
    live = np.flatnonzero(scales > 0)
    if len(live) == 0:
        advice = "choose others, or centre and scale X (for example with StandardScaler): values far from 0 "
        advice = "see how these matrices were computed." if given else f"{advice}hide how they vary."
        raise ValueError(f"kernels: none of them varies over the training samples, to rounding; {advice}")
    if len(live) < len(scales):
        dead = ", ".join(names[m] for m in np.flatnonzero(scales <= 0)[:5])
        advice = (
            "If the columns do vary, centre and scale X, for example with StandardScaler: values far from "
        )
        advice = "Leave such matrices out." if given else f"{advice}0 hide it."
        warn_of_samples(f"kernels without variance on the training samples get weight 0: {dead}. {advice}")
    return live


def all_kernels(weights: FloatArray, live: IntArray, size: int) -> FloatArray:
    """Weights of all kernels, zero except for the live ones: (..., n_live) -> (..., size)."""
    full = np.zeros((*weights.shape[:-1], size))
    full[..., live] = weights
    return full


class Checked:
    """A matrix that is checked in the same pass as its product with a vector.

    It has to be square, finite, symmetric and positive semidefinite. Every principal submatrix of a positive
    semidefinite matrix is positive semidefinite too, so the largest evenly spread one that `flops` allow is
    factored, and no entry may be larger than the diagonal allows. A matrix that slips through shows as
    alpha' K alpha < 0 in the fit.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    name : str
        What to call it in errors.
    flops : float
    along : Along, optional
        What the pass is to bring along.
    look : Scan, optional
        What was found when K was read.

    Examples
    --------
    >>> seen = Checked(np.eye(3), "K", 1e6)
    >>> seen @ np.ones(3)
    array([1., 1., 1.])
    >>> Checked(np.array([[1.0, 2.0], [2.0, 1.0]]), "K", 1e6).finish()  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ValueError: K is not positive semidefinite (row 0 has 1 on its diagonal, and an entry of size 2): ...
    """

    def __init__(
        self,
        K: FloatArray,
        name: str,
        flops: float,
        along: Along = NOTHING,
        look: Scan | None = None,
    ) -> None:
        self.K, self.name, self.along, self.look = as_square(K, name), name, along, look
        self.shape, self.dtype = self.K.shape, self.K.dtype
        self.seen: Scan | None = None
        self.rows = _spread(len(self.K), flops)

    def diagonal(self) -> FloatArray:
        """The diagonal of K: its entries are far apart in memory, so the product brings them along."""
        return self.K.diagonal() if self.seen is None else self.seen.diagonal

    @property
    def square(self) -> float:
        """alpha'K alpha, if the pass was asked for it."""
        return 0.0 if self.seen is None else self.seen.square

    def __matmul__(self, v: FloatArray) -> FloatArray:
        u = np.asarray(v, dtype=np.float64)
        self.seen = look_at(self.K, self.name, u, self.rows, self.along, self.look)
        return np.asarray(self.seen.product, dtype=v.dtype)

    def __getitem__(self, key: Any) -> FloatArray:
        return np.asarray(self.K[key])

    def finish(self) -> None:
        """Check what no product has checked yet, and whether K is positive semidefinite on `rows`."""
        if self.seen is None:
            self @ np.zeros(len(self.K))
        assert self.seen is not None
        from ..kernels._loops import is_definite

        precision = np.finfo(self.dtype if self.dtype.kind == "f" else np.float64).eps
        slack = 10.0 * float(np.sqrt(precision))
        large = _too_large(self.seen, slack)
        if len(large) or not is_definite(self.seen.part, slack):
            where, hint = "", "" if self.dtype == np.float32 else f" {ROUNDED}"
            if len(large):
                own, size = self.seen.diagonal[large[0]], self.seen.sizes[large[0]]
                where = f" (row {large[0]} has {own:.4g} on its diagonal, and an entry of size {size:.4g})"
            raise ValueError(
                f"{self.name} is not positive semidefinite{where}: clip its negative eigenvalues "
                f"(numpy.linalg.eigh), add a constant to its diagonal, or leave it out.{hint}"
            )


def _too_large(seen: Scan, slack: float) -> IntArray:
    """Rows with an entry too large for their diagonal: K_ij^2 <= K_ii K_jj if K is positive semidefinite.

    A share of the largest K_jj, which is taken for all of them, is added to the diagonal before.
    """
    diagonal = seen.diagonal.astype(np.float64)
    top = float(diagonal.max())
    most = np.sqrt(np.maximum(diagonal / top + slack, 0.0) * (1.0 + slack)) * top if top > 0.0 else 0.0
    return np.flatnonzero(seen.sizes > most)


def check_kernel_matrix(K: FloatArray, name: str, flops: float) -> None:
    """Raise unless K is a kernel matrix, as `Checked` would."""
    Checked(K, name, flops).finish()


@lru_cache(maxsize=8)
def _spread(n: int, flops: float) -> IntArray:
    """Evenly spread samples, as many as can be factored with `flops`."""
    size = max(2, int((3.0 * flops) ** (1.0 / 3.0)))
    return np.unique(np.linspace(0, n - 1, min(size, n)).astype(np.uintp))
