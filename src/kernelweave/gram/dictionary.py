"""The kernels of one fit: their training matrices, normalised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.linalg import lapack

from .._threads import blas_threads_for
from .._typing import FloatArray, IntArray
from .._warnings import warn
from ..kernels import Normalization, check_gram, resolve_normalization
from ..kernels.base import largest_size
from .base import Gram
from .blocked import Unrounded
from .blocks import Blocks
from .choice import Choice, Task, choose_engine
from .dense import DenseGram
from .memory import parse_memory
from .normalised import normalised, with_rules
from .predictor import Predictor
from .sources import KernelSource, without
from .terms import kernel_terms

__all__ = ["Dictionary", "check_kernel_matrix", "parse_memory"]

#: kernels computed together from which on no engine that keeps them is faster
LIGHT = 2000

#: work spent on testing whether given matrices are positive semidefinite, for all kernels together
PSD_FLOPS = 1e8


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
        Whether to check the matrices; parts of matrices checked before need not be.
    gram : {"auto", "dense", "packed", "cached", "store", "blocked", "dask"}, default="dense"
        The Gram engine; "auto" takes the fastest that `memory_limit`, or by default the memory
        that is free, allows, and "dask" spreads the kernels over the workers of a Dask cluster.
    combined : bool or int, default=True
        Whether the solver asks for the weighted sum of all kernels, which then has to fit too; or on
        how many samples at most.
    device : torch.device, optional
        Where the kernels are computed, and `memory_limit` counts; with NumPy by default.
    host_sums : bool, default=False
        Whether weighted sums of the kernels come back from the device.
    double : bool, default=False
        Whether the device computes in double precision.

    Attributes
    ----------
    gram : Gram
        The live kernels on the training samples.
    gram_reason : str
        Why this engine, in one sentence.
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
    ) -> None:
        self.source = source
        self.names = source.names
        self.device = device
        self.normalizations: Sequence[Normalization]
        if device is not None and gram == "dask":
            raise ValueError("gram='dask' computes on the workers of a cluster: leave device=None with it.")
        if device is not None:
            self._keep_on_device(normalize, sample_weight, check, memory_limit, host_sums, double)
            return
        if gram == "dask":
            self._keep_on_workers(normalize, sample_weight, check, memory_limit, combined)
            return
        choice = choose_engine(gram, self._task(normalize, combined), memory_limit)
        self.gram_reason = choice.reason
        self.gram: Gram
        self.live: IntArray
        if choice.name == "dense":
            self._keep_matrices(normalize, sample_weight, check)
        else:
            self._keep_blocks(choice, normalize, sample_weight, check)

    def _task(self, normalize: Any, combined: bool | int) -> Task:
        """What the engine has to hold; matrices that are given and only scaled need no room."""
        changed = type(resolve_normalization(normalize)).train is not Normalization.train
        n_new = len(self.names) if changed or self.source.copies else 0
        sizes = (len(self.names), self.source.n_bases, self.source.n_samples)
        light = len(self.source.together) >= max(LIGHT, 0.9 * len(self.names))
        mapped = self.source.mapped and not changed
        given = self.source.given
        return Task(*sizes, n_new=n_new, given=given, mapped=mapped, combined=combined, light=light)

    def _keep_matrices(self, normalize: Any, sample_weight: FloatArray | None, check: bool) -> None:
        """All matrices, normalised, in memory."""
        rules = self.normalizations = [resolve_normalization(normalize) for _ in self.names]
        matrices: dict[int, FloatArray] = {}
        for m, K in self.source.train_all():
            if check:
                check_values(self.source, m, K)
            matrices[m] = rules[m].fit(K, sample_weight).train(K)
        scales = np.array([rule.scale_ for rule in rules])
        self.live = with_variance(scales, self.names)
        self.gram = DenseGram([matrices[m] for m in self.live], scales[self.live], self._unrounded(matrices))
        self.gram.centred = _centre(rules)

    def _unrounded(self, matrices: dict[int, FloatArray]) -> Unrounded | None:
        """The normalised kernels, where a rule that changes entries wrote them in single precision."""
        rule = type(self.normalizations[0])
        single = any(K.dtype != np.float64 for K in matrices.values())
        if not single or rule.train is Normalization.train or rule.entries is Normalization.entries:
            return None
        return Unrounded(with_rules(self.source.blocks(), self.normalizations), kernels=self.live)

    def _keep_blocks(
        self, choice: Choice, normalize: Any, sample_weight: FloatArray | None, check: bool
    ) -> None:
        """The kernels to be computed in blocks; one pass over them, if that, for the normalisation."""
        raw = self.source.blocks()
        if check:
            check_parts(self.source, raw)
        blocks, rules = normalised(raw, normalize, sample_weight)
        self.normalizations, scales = rules, np.array([rule.scale_ for rule in rules])
        self.live = with_variance(scales, self.names)
        self.gram = choice.build(blocks.take(kernels=self.live), scales[self.live])
        self.gram.centred = _centre(rules)

    def _keep_on_device(
        self,
        normalize: Any,
        sample_weight: FloatArray | None,
        check: bool,
        memory_limit: int | None,
        host_sums: bool,
        double: bool,
    ) -> None:
        """The kernels on another device, computed there from what they share."""
        from .torch.fit import fit_on_device, open_engine

        raw = self.source.blocks()
        if check and not all(part.positive for part in raw.parts):
            check_parts(self.source, raw)
        engine = open_engine(raw, self.device, double, memory_limit, host_sums)
        self.normalizations, scales = fit_on_device(raw, normalize, sample_weight, engine)
        self.live = with_variance(scales, self.names)
        everything = len(self.live) == len(scales)
        self.gram = engine if everything else engine.subset(kernels=self.live)
        self.gram_reason = f"device={str(self.device)!r} was asked for: kernels are computed there."

    def _keep_on_workers(
        self,
        normalize: Any,
        sample_weight: FloatArray | None,
        check: bool,
        memory_limit: int | None,
        combined: bool | int,
    ) -> None:
        """The kernels on the workers of a Dask cluster, normalised there."""
        from .dask.engine import DaskGram
        from .dask.share import Plan

        raw = self.source.blocks()
        if check:
            check_parts(self.source, raw)
        plan = Plan(normalize, sample_weight, combined=combined, limit=memory_limit)
        gram = DaskGram(raw, plan=plan)
        self.normalizations, scales = gram.rules, gram.scales
        self.live = with_variance(scales, self.names)
        self.gram = gram if len(self.live) == len(scales) else gram.subset(kernels=self.live)
        self.gram_reason = f"gram='dask' was asked for: {gram.describe()}."

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


def _centre(rules: Sequence[Normalization]) -> bool:
    """Whether normalisations subtract means."""
    return any(rule.entries()[1] is not None for rule in rules)


def check_parts(source: KernelSource, blocks: Blocks) -> None:
    """`check_kernel_matrix` on the samples it would look at, of kernels that are computed in blocks."""
    rows = _spread(source.n_samples, PSD_FLOPS / len(source.names))
    # kernels computed together are positive semidefinite whatever the data
    kernels = without(np.ones(len(source.names), dtype=bool), source.together)
    doubtful = blocks.take(kernels=kernels).each(rows, rows) if len(kernels) else ()
    for k, K in doubtful:
        check_values(source, int(kernels[k]), K)


def check_values(source: KernelSource, m: int, K: FloatArray) -> None:
    """`check_kernel_matrix` of kernel m; one that overflows on data that do not is told apart."""
    try:
        check_kernel_matrix(K, f"kernel {source.names[m]!r}", PSD_FLOPS / len(source.names))
    except ValueError as error:
        if source.given or not np.isinf(largest_size(np.nan_to_num(K, posinf=np.inf, neginf=-np.inf))):
            raise
        raise ValueError(
            f"kernel {source.names[m]!r} overflows on X: rescale the columns (for example with "
            "StandardScaler), or choose a kernel that grows less."
        ) from error


def with_variance(scales: FloatArray, names: Sequence[str]) -> IntArray:
    """Kernels of positive scale; a warning about the others, an error if there are none."""
    live = np.flatnonzero(scales > 0)
    if len(live) == 0:
        raise ValueError(
            "kernels: none of them varies over the training samples, to rounding; choose others, or centre "
            "and scale X (for example with StandardScaler): values far from 0 hide how they vary."
        )
    if len(live) < len(scales):
        dead = ", ".join(names[m] for m in np.flatnonzero(scales <= 0)[:5])
        warn(
            f"kernels without variance on the training samples get weight 0: {dead}. If the columns do vary, "
            "centre and scale X, for example with StandardScaler: values far from 0 hide it."
        )
    return live


def all_kernels(weights: FloatArray, live: IntArray, size: int) -> FloatArray:
    """Weights of all kernels, zero but for the live ones: (..., n_live) -> (..., size)."""
    full = np.zeros((*weights.shape[:-1], size))
    full[..., live] = weights
    return full


def check_kernel_matrix(K: FloatArray, name: str, flops: float) -> None:
    """Raise unless K is square, finite, symmetric and, as far as `flops` allow, positive semidefinite.

    Every principal part of a positive semidefinite matrix is one: the largest evenly spread part
    that can be afforded is factored. What slips through shows as alpha' K alpha < 0 in the fit.
    """
    check_gram(K, name)
    rows = _spread(len(K), flops)
    part = K[np.ix_(rows, rows)].astype(np.float64)
    slack = 10.0 * np.sqrt(np.finfo(K.dtype).eps) * max(float(part.diagonal().max()), 1e-300)
    part.flat[:: len(part) + 1] += slack
    with blas_threads_for(len(part)):
        _, failed = lapack.dpotrf(part, overwrite_a=True)
    if failed:
        raise ValueError(
            f"{name} is not positive semidefinite: clip its negative eigenvalues "
            "(numpy.linalg.eigh), add a constant to its diagonal, or leave it out."
        )


def _spread(n: int, flops: float) -> IntArray:
    """Evenly spread samples, as many as can be factored with `flops`."""
    size = max(2, int((3.0 * flops) ** (1.0 / 3.0)))
    return np.unique(np.linspace(0, n - 1, min(size, n)).astype(int))
