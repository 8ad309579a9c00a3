"""The kernels of a greedy fit: normalised, weighted, centred, and factored once each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from ..._typing import BoolArray, FloatArray, IntArray
from ...gram import Dictionary, KernelSource
from ...gram.dictionary import PSD_FLOPS, check_kernel_matrix, with_variance
from ...kernels import Normalization, resolve_normalization
from .blocks import Block, Full, LowRank, captured_by_factors, inverse_roots, thin_factor

#: ranks, as shares of n, up to which a thin factor is used: the kernel's own, and one found by pivoting
OWN_RANK, FOUND_RANK = 1 / 3, 1 / 8

#: bytes of factors of equal rank that are scored by one product
STACK_BYTES = 1 << 26

#: matrices that refitting takes, besides the kernels
WORK_MATRICES = 4


class FactorDictionary(Dictionary):
    """M kernels in the form in which greedy selection uses them.

    With S = diag(sqrt(w)), w the sample weights, and H the projection off S 1 (the intercept; the
    identity without one), kernel m is held as

        H S K_m S H

    so that weighted samples and an intercept need no further thought: a sample of weight 2 counts as
    two, and residuals have weighted mean zero. A kernel with a thin factor (`Kernel.low_rank`, or
    found by pivoting) is held as that factor, the others as matrix and Cholesky factor in one.

    Parameters
    ----------
    source : KernelSource
    normalize : str or None
    sample_weight : ndarray of shape (n,)
    centred : bool
        Whether the model has an intercept.
    shift : float
        Smallest ridge lambda l that will be asked for.
    memory_limit : int, optional
        Bytes the factors may take; kernels beyond it are computed again whenever they are scored.
    n_jobs : int, optional
        Threads that compute the kernels.
    check : bool, default=True
        Whether to check the matrices.
    device : torch.device, optional
        Where kernels are scored; with NumPy by default.

    Attributes
    ----------
    live : ndarray of int
        Kernels with variance.
    ranks : ndarray of shape (M,)
        Columns of the thin factors, n for kernels without one, 0 for kernels without variance.
    means : dict of ndarray of shape (n,)
        Mean value of each live kernel between each sample and all of them, before centring.

    Examples
    --------
    >>> from kernelweave.gram import FeatureSource
    >>> from kernelweave.kernels import RBF, Linear
    >>> X = np.random.default_rng(0).normal(size=(30, 5))
    >>> source = FeatureSource([("plane", Linear(columns=[0, 1])), ("rbf", RBF())], X)
    >>> dictionary = FactorDictionary(source, "variance", np.ones(30), centred=True, shift=0.1)
    >>> dictionary.ranks
    array([ 2, 30])
    """

    def __init__(
        self,
        source: KernelSource,
        normalize: str | None,
        sample_weight: FloatArray,
        centred: bool,
        shift: float,
        memory_limit: int | None = None,
        n_jobs: int | None = None,
        check: bool = True,
        device: Any = None,
    ) -> None:
        self.source, self.names, self.normalize = source, source.names, normalize
        self.device = device
        self.weight, self.centred, self.shift = sample_weight, centred, shift
        self._limit, self._check = memory_limit, check
        self._rules: list[Normalization | None] = [None] * len(self.names)
        self._kept: dict[int, Block] = {}
        self.means: dict[int, FloatArray] = {}
        self.ranks = np.zeros(len(self.names), dtype=int)
        load = Parallel(n_jobs=n_jobs, require="sharedmem", return_as="generator")
        for m, block in enumerate(load(delayed(self._load)(m) for m in range(len(self.names)))):
            self._keep(m, block)
        self._check = False  # what is computed again was checked before
        self.normalizations = [rule for rule in self._rules if rule is not None]
        self.live = with_variance(np.array([rule.scale_ for rule in self.normalizations]), self.names)
        self._groups = list(_grouped(self._kept))
        self._scores: Any = None
        if device is not None:
            from .torch_scores import TorchScores

            self._scores = TorchScores(self._kept, device)

    @property
    def n_samples(self) -> int:
        """Training samples."""
        return self.source.n_samples

    @property
    def engine(self) -> str:
        """How the kernels are held: "factors", or "recomputed" when some do not fit into memory."""
        return "factors" if len(self._kept) == len(self.live) else "recomputed"

    def block(self, m: int) -> Block:
        """Kernel m, from memory or computed again."""
        block = self._kept[m] if m in self._kept else self._load(m)
        assert block is not None
        return block

    def captured(self, R: FloatArray, wanted: BoolArray, shift: float) -> FloatArray:
        """tr(R' K_m (K_m + shift I)^-1 R) of the kernels `wanted`, -inf for the others; shape (M,)."""
        R = np.asfortranarray(R)
        if self._scores is None:
            return self._by_host(R, wanted, shift)
        out, found = np.full(len(self.names), -np.inf), self._scores.captured(R, wanted, shift)
        out[list(found)] = list(found.values())
        rest = wanted & np.isinf(out)
        return np.maximum(out, self._by_host(R, rest, shift)) if rest.any() else out

    def _by_host(self, R: FloatArray, wanted: BoolArray, shift: float) -> FloatArray:
        out, alone = np.full(len(self.names), -np.inf), np.flatnonzero(wanted)
        for group in self._groups:
            if wanted[group.members].any():
                out[group.members] = group.captured(R, shift, wanted[group.members])
            alone = np.setdiff1d(alone, group.members, assume_unique=True)
        for m in alone:
            out[m] = self.block(int(m)).captured(R, shift)
        return np.where(wanted, out, -np.inf)

    def quads(self, A: FloatArray, kernels: IntArray) -> FloatArray:
        """tr(A' K_m A) of some kernels."""
        A = np.asfortranarray(A)
        return np.array([self.block(int(m)).quad(A) for m in kernels])

    def _load(self, m: int) -> Block | None:
        """Kernel m ready for use, None if it has no variance."""
        Phi = self.source.low_rank(m, int(OWN_RANK * self.n_samples))
        return self._from_matrix(m) if Phi is None else self._from_factor(m, Phi)

    def _from_factor(self, m: int, Phi: FloatArray) -> Block | None:
        if not np.isfinite(Phi).all():
            raise ValueError(f"kernel {self.names[m]!r} overflows: scale the columns of X that it reads.")
        Phi = np.asarray(Phi, dtype=np.float64)
        rule = self._rule(m, _Product(Phi))
        if rule.scale_ == 0.0:
            return None
        Phi = np.sqrt(rule.scale_) * rule.train_factor(Phi)
        centre = self._share @ Phi
        mean = Phi @ centre
        return LowRank(np.sqrt(self.weight)[:, None] * (Phi - centre if self.centred else Phi), mean)

    def _from_matrix(self, m: int) -> Block | None:
        given, name = self.source.train(m), f"kernel {self.names[m]!r}"
        if self._check:
            check_kernel_matrix(given, name, PSD_FLOPS / len(self.names))
        rule = self._rule(m, given)
        if rule.scale_ == 0.0:
            return None
        K = rule.train(given) * rule.scale_
        K = K if K.dtype == np.float64 else K.astype(np.float64)
        mean = K @ self._share
        if self.centred:
            half = mean - 0.5 * float(self._share @ mean)
            K -= half[:, None]
            K -= half
        if (self.weight != 1.0).any():
            K *= np.sqrt(self.weight)[:, None]
            K *= np.sqrt(self.weight)
        Phi = thin_factor(K, self.shift, int(FOUND_RANK * self.n_samples))
        return Full(K, mean, name) if Phi is None else LowRank(Phi, mean)

    @property
    def _share(self) -> FloatArray:
        return self.weight / self.weight.sum()

    def _rule(self, m: int, K: FloatArray | _Product) -> Normalization:
        """The normalisation of kernel m, fitted when the kernel is first seen."""
        rule = self._rules[m]
        if rule is None:
            rule = resolve_normalization(self.normalize).fit(K, self.weight)  # type: ignore[arg-type]
            self._rules[m] = rule
        return rule

    def _keep(self, m: int, block: Block | None) -> None:
        """Hold a kernel in memory if the limit allows."""
        if block is None:
            return
        full = isinstance(block, Full)
        self.means[m] = block.mean
        self.ranks[m] = self.n_samples if isinstance(block, Full) else block.Phi.shape[1]
        work = WORK_MATRICES * 8 * self.n_samples**2 if full else 0
        if self._limit is not None and work > self._limit:
            raise MemoryError(
                f"refitting on {self.n_samples} samples needs {work / 1e9:.3g} GB, memory_limit allows "
                f"{self._limit / 1e9:.3g} GB: raise it, use fewer samples, or kernels of low rank."
            )
        taken = sum(kept.nbytes for kept in self._kept.values())
        if self._limit is None or taken + block.nbytes + work <= self._limit:
            self._kept[m] = block


class _Product:
    """K = Phi Phi', as far as normalisations look at it."""

    def __init__(self, Phi: FloatArray) -> None:
        self.Phi, self.shape, self.dtype = Phi, (len(Phi), len(Phi)), Phi.dtype

    def diagonal(self) -> FloatArray:
        return np.einsum("ij,ij->i", self.Phi, self.Phi)

    def __matmul__(self, v: FloatArray) -> FloatArray:
        return self.Phi @ (self.Phi.T @ v)


class _Group:
    """Kernels with factors of equal rank, scored by one product."""

    def __init__(self, members: IntArray, stack: FloatArray) -> None:
        self.members, self.stack = members, stack
        self.shift: float | None = None

    def captured(self, R: FloatArray, shift: float, wanted: BoolArray) -> FloatArray:
        """tr(R' K (K + shift I)^-1 R) of the members; of the `wanted` only where these are few."""
        if self.shift != shift:
            self.roots, self.shift = inverse_roots(self.stack, shift), shift
        if 2 * wanted.sum() > len(wanted):
            return captured_by_factors(self.stack, self.roots, R)
        out = np.zeros(len(wanted))
        out[wanted] = captured_by_factors(self.stack[wanted], self.roots[wanted], R)
        return out


def _grouped(kept: dict[int, Block]) -> Iterator[_Group]:
    """Groups of thin factors; each factor becomes a view into the memory of its group."""
    thin = {m: block for m, block in kept.items() if isinstance(block, LowRank) and block.Phi.shape[1] > 0}
    for rank in sorted({block.Phi.shape[1] for block in thin.values()}):
        members = np.array([m for m, block in thin.items() if block.Phi.shape[1] == rank])
        step = max(1, STACK_BYTES // thin[members[0]].nbytes)
        for start in range(0, len(members), step):
            part = members[start : start + step]
            stack = np.stack([thin[m].Phi.T for m in part])
            for m, factor in zip(part, stack, strict=True):
                thin[m].Phi = factor.T
            yield _Group(part, stack)
