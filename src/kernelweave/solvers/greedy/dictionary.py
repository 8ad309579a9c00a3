"""The kernels of a greedy fit: normalised, weighted, centred, and held in the cheapest form to score."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.linalg import blas, lapack

from ..._typing import BoolArray, FloatArray, IntArray
from ...gram import Dictionary, KernelSource
from ...gram._workers import mirror_lower
from ...gram.dictionary import PSD_FLOPS, check_kernel_matrix, with_variance
from ...kernels import Normalization, resolve_normalization

#: what a thin factor may leave out, as a share of the ridge: gains change by less than this share
LEFT_OUT = 1e-10

#: pivots after which the decay of the trace is first extrapolated
FIRST_LOOK = 8


class LowRank:
    """A kernel K = Phi Phi'.

    Parameters
    ----------
    Phi : ndarray of shape (n, r)
    mean : ndarray of shape (n,)
        Mean of the kernel, before centring, between each sample and all training samples.
    """

    def __init__(self, Phi: FloatArray, mean: FloatArray) -> None:
        self.Phi, self.mean = Phi, mean

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return 8 * (self.Phi.size + self.mean.size)

    def captured(self, R: FloatArray, shift: float) -> float:
        """tr(R' K (K + shift I)^-1 R) = tr(P' (Phi'Phi + shift I)^-1 P) with P = Phi'R."""
        return float(captured_by_factors(self.Phi.T[None], inverse_roots(self.Phi.T[None], shift), R)[0])

    def add_to(self, total: FloatArray, weight: float = 1.0) -> None:
        """total += weight K."""
        total += weight * (self.Phi @ self.Phi.T)

    def quad(self, A: FloatArray) -> float:
        """tr(A' K A)."""
        return float(((self.Phi.T @ A) ** 2).sum())


class Full:
    """A kernel of high rank, with the Cholesky factor of K + shift I in the same memory.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Overwritten: its lower triangle (in column order) stays, and the factor goes above it.
    mean : ndarray of shape (n,)
        As for `LowRank`.
    name : str
        For error messages.
    """

    def __init__(self, K: FloatArray, mean: FloatArray, name: str) -> None:
        # a symmetric matrix in row order is the same matrix in column order
        self.packed = K if K.flags.f_contiguous else K.T if K.flags.c_contiguous else np.asfortranarray(K)
        self.diagonal = self.packed.diagonal().copy()
        self.mean, self.name = mean, name
        self.shift: float | None = None

    @property
    def nbytes(self) -> int:
        """Memory taken."""
        return 8 * (self.packed.size + 2 * self.mean.size)

    def factor(self, shift: float) -> None:
        """Write U with U'U = K + shift I onto the upper triangle."""
        if self.shift is not None:
            mirror_lower(self.packed)
        np.fill_diagonal(self.packed, self.diagonal + shift)
        self.packed, info = lapack.dpotrf(self.packed, lower=0, clean=0, overwrite_a=1)
        if info != 0:
            raise ValueError(
                f"{self.name} is not positive semidefinite, or alpha is too small for it: clip its negative "
                "eigenvalues (numpy.linalg.eigh), leave it out, or raise alpha."
            )
        self.shift = shift

    def captured(self, R: FloatArray, shift: float) -> float:
        """tr(R' K (K + shift I)^-1 R) = ||R||^2 - shift ||U'^-1 R||^2."""
        if self.shift != shift:
            self.factor(shift)
        solved = blas.dtrsm(1.0, self.packed, R, lower=0, trans_a=1)
        return max(float((R**2).sum()) - shift * float((solved**2).sum()), 0.0)

    def add_to(self, total: FloatArray, weight: float = 1.0) -> None:
        """total += weight K on and below the diagonal; entries above it have no meaning."""
        total += self.packed if weight == 1.0 else weight * self.packed
        total.flat[:: len(total) + 1] += weight * (self.diagonal - self.packed.diagonal())

    def quad(self, A: FloatArray) -> float:
        """tr(A' K A)."""
        product = blas.dsymm(1.0, self.packed, A, lower=1)
        product += (self.diagonal - self.packed.diagonal())[:, None] * A
        return float((A * product).sum())


Block = LowRank | Full


def cholesky(A: FloatArray) -> FloatArray:
    """Lower Cholesky factors of matrices that are positive definite up to rounding."""
    try:
        return np.linalg.cholesky(A)
    except np.linalg.LinAlgError as error:
        raise ValueError("alpha is too small: its ridge drowns in rounding; raise it.") from error


def inverse_roots(stack: FloatArray, shift: float) -> FloatArray:
    """L^-1 with L L' = Phi'Phi + shift I, for factors Phi' of shape (m, r, n); shape (m, r, r)."""
    products = stack @ stack.transpose(0, 2, 1)
    products[:, np.arange(stack.shape[1]), np.arange(stack.shape[1])] += shift
    return np.linalg.inv(cholesky(products))


def captured_by_factors(stack: FloatArray, roots: FloatArray, R: FloatArray) -> FloatArray:
    """||L^-1 Phi'R||^2 of every factor, by one product for all of them; shape (m,)."""
    m, r, n = stack.shape
    projected = (stack.reshape(m * r, n) @ R).reshape(m, r, -1)
    result: FloatArray = ((roots @ projected) ** 2).sum(axis=(1, 2))
    return result


def thin_factor(K: FloatArray, shift: float, max_rank: int) -> FloatArray | None:
    """Phi (n, r) with K - Phi Phi' positive semidefinite of trace <= 1e-10 shift, or None if r > `max_rank`.

    Cholesky factorization, largest pivot first, of a matrix whose eigenvalues decay fast: n r^2
    operations. It gives up as soon as the remaining trace falls too slowly to reach the target.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    shift : float
        The smallest ridge lambda l with which the factor will be used.
    max_rank : int
    """
    left = K.diagonal().copy()
    start, target = float(left.sum()), LEFT_OUT * shift
    if target < 10.0 * np.finfo(K.dtype).eps * len(K) * float(left.max(initial=0.0)):
        return None  # rounding would hide what is left
    Phi = np.empty((len(K), max_rank), order="F")
    for k in range(max_rank + 1):
        trace = float(left.sum())
        if trace <= target:
            return Phi[:, :k].copy(order="F")
        if k == max_rank or (k >= FIRST_LOOK and _too_slow(start, trace, target, k / max_rank)):
            break
        pivot = int(left.argmax())
        column = (K[:, pivot] - Phi[:, :k] @ Phi[pivot, :k]) / np.sqrt(left[pivot])
        Phi[:, k] = column
        left = np.maximum(left - column**2, 0.0)
    return None


def _too_slow(start: float, trace: float, target: float, share: float) -> bool:
    """Whether the trace, falling geometrically, misses its target when all pivots are used."""
    result: bool = np.log(start / trace) < share * np.log(start / target)
    return result


#: largest rank, as a share of n, of a thin factor: of the kernel's own factor, and of one found by pivoting
OWN_RANK, FOUND_RANK = 1 / 3, 1 / 8

#: most bytes of factors of equal rank that are scored by one product
STACK_BYTES = 1 << 26

#: matrices that refitting takes, besides the kernels
WORK_MATRICES = 4


class FactorDictionary(Dictionary):
    """M kernels in the form in which greedy selection uses them.

    With S = diag(sqrt(w)), w the sample weights, and H the projection off S 1 (the intercept; the
    identity without one), kernel m is held as

        H S K_m S H

    This takes care of weighted samples and of an intercept: a sample of weight 2 counts as two, and residuals
    have weighted mean zero. A kernel with a thin factor (`Kernel.low_rank`, or found by pivoting) is held as
    that factor, the others as matrix and Cholesky factor in one.

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
        Bytes that the factors may take; kernels that do not fit are computed again whenever they are scored.
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
        self._check = False  # kernels that are computed again were checked before
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
        result: FloatArray = self.weight / self.weight.sum()
        return result

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
    """K = Phi Phi', with what normalisations look at."""

    def __init__(self, Phi: FloatArray) -> None:
        self.Phi, self.shape, self.dtype = Phi, (len(Phi), len(Phi)), Phi.dtype

    def diagonal(self) -> FloatArray:
        result: FloatArray = np.einsum("ij,ij->i", self.Phi, self.Phi)
        return result

    def __matmul__(self, v: FloatArray) -> FloatArray:
        return self.Phi @ (self.Phi.T @ v)

    def __getitem__(self, key: tuple[IntArray, IntArray]) -> FloatArray:
        """The part K[np.ix_(rows, columns)]."""
        return np.asarray(self.Phi[key[0].ravel()] @ self.Phi[key[1].ravel()].T)


class _Group:
    """Kernels with factors of equal rank, scored by one product."""

    def __init__(self, members: IntArray, stack: FloatArray) -> None:
        self.members, self.stack = members, stack
        self.shift: float | None = None

    def captured(self, R: FloatArray, shift: float, wanted: BoolArray) -> FloatArray:
        """tr(R' K (K + shift I)^-1 R) of the members; only of the `wanted` ones if these are few."""
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
