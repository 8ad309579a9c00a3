"""What kernels share between two samples, on a device, and the kernels that are functions of it.

Sums over many exponentials of one distance have a version compiled by Triton, which reads the base once
whatever the number of kernels. Every other kernel is computed by its own `of_base`, a few rows at a time, so
that these stay in the cache.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from ..._backend import torch
from ..._typing import FloatArray, IntArray
from ...kernels import Kernel
from ...kernels.bases import Base, SquaredEuclidean
from ..blocks import tiles
from ..shared import Distances, Given, OwnValues, Pairs, Shared
from ..sharing import SharedSquares

#: number of entries above which a sparse table is not made dense
MOST_DENSE = 1 << 31


class DevicePairs(ABC):
    """One quantity of two samples: a base, values of a kernel, or differences column by column.

    Attributes
    ----------
    n_samples : int
    stored : bool
        Whether reading it computes nothing.
    like : tensor
        A tensor of the same precision, on the same device.
    """

    n_samples: int
    stored = False
    like: Any

    @abstractmethod
    def part(self, rows: Any, columns: Any) -> Any:
        """The quantity between two sets of samples, each a tensor of positions or a slice."""

    def to(self, Z: Any) -> Any:
        """The quantity between new points, a tensor (n_new, F) in double precision, and the samples."""
        raise NotImplementedError

    @abstractmethod
    def diag(self) -> Any:
        """The quantity of every sample with itself."""

    def row_bytes(self, n_columns: int) -> int:
        """Bytes of one row of a part with this many columns."""
        return n_columns * int(self.like.element_size())

    @abstractmethod
    def take(self, samples: Any) -> DevicePairs:
        """The same on some samples."""


class Points(DevicePairs):
    """A base of points; if the base allows it, their mean is subtracted, which makes rounding least.

    Parameters
    ----------
    base : Base
    X : tensor of shape (n, F)
        With `mean` subtracted.
    mean : tensor of shape (F,), optional
        In double precision.
    each : tensor of shape (n,), optional
        ``base.each(X)``.
    """

    def __init__(self, base: Base, X: Any, mean: Any = None, each: Any = None) -> None:
        self.base, self.X, self.mean, self.n_samples, self.like = base, X, mean, len(X), X[:0, :0]
        self.each = base.each(X) if each is None else each
        self._padded: Any = None

    def part(self, rows: Any, columns: Any) -> Any:
        if self.each is None:
            return self.base.between(self.X[rows], self.X[columns])
        B = self.base.between(self.X[rows], self.X[columns], self.each[rows], self.each[columns])
        if self.base.distance:  # a difference of products misses 0 by rounding
            left, right = (positions(some, self.n_samples, B.device) for some in (rows, columns))
            B.masked_fill_(left[:, None] == right, 0.0)
        return B

    def to(self, Z: Any) -> Any:
        moved = (Z if self.mean is None else Z - self.mean).to(self.X.dtype)
        return self.base.between(moved, self.X, None, self.each)

    @property
    def streams(self) -> bool:
        """Whether computing distances again for every product costs little more than the kernels."""
        return isinstance(self.base, SquaredEuclidean) and self.X.shape[1] <= MOST_STREAMED

    def padded(self, samples: Any) -> tuple[Any, Any, Any]:
        """Positions, points and their squares, padded with columns of zeros as the compiled loops need it."""
        if self._padded is None:
            missing = -self.X.shape[1] % PADDING
            self._padded = torch.nn.functional.pad(self.X, (0, missing)).contiguous()
        return samples, self._padded[samples], self.each[samples]

    def diag(self) -> Any:
        return self.base.diag(self.X)

    def take(self, samples: Any) -> Points:
        each = None if self.each is None else self.each[samples]
        return Points(self.base, self.X[samples], self.mean, each)


class Stored(DevicePairs):
    """A matrix of all pairs.

    Parameters
    ----------
    K : tensor of shape (n, n)
    """

    stored = True

    def __init__(self, K: Any) -> None:
        self.K, self.n_samples, self.like = K, len(K), K[:0]

    def part(self, rows: Any, columns: Any) -> Any:
        return self.K[rows][:, columns]

    def diag(self) -> Any:
        return self.K.diagonal()

    def take(self, samples: Any) -> Stored:
        return Stored(self.K[samples][:, samples].contiguous())


class FromHost(DevicePairs):
    """A quantity that the host computes, a part at a time.

    Parameters
    ----------
    pairs : Pairs
    like : tensor
        A tensor of the wanted precision, on the wanted device.
    """

    def __init__(self, pairs: Pairs, like: Any) -> None:
        self.pairs, self.like, self.n_samples = pairs, like, pairs.n_samples

    def part(self, rows: Any, columns: Any) -> Any:
        chosen = (_host(part, self.n_samples) for part in (rows, columns))
        return as_tensor(self.pairs.between(*chosen)).to(self.like)

    def diag(self) -> Any:
        return torch.as_tensor(self.pairs.diag()).to(self.like)

    def take(self, samples: Any) -> FromHost:
        return FromHost(self.pairs.take(_host(samples, self.n_samples)), self.like)


class Differences(DevicePairs):
    """Squared differences of two samples, column by column.

    Parameters
    ----------
    X : tensor of shape (n, F)
        With `mean` subtracted, which makes rounding least.
    mean : tensor of shape (F,)
        In double precision.
    """

    def __init__(self, X: Any, mean: Any) -> None:
        self.X, self.mean, self.n_samples, self.like = X, mean, len(X), X[:0, :0]

    def part(self, rows: Any, columns: Any) -> Any:
        return (self.X[rows][:, None, :] - self.X[columns][None, :, :]).square_()

    def to(self, Z: Any) -> Any:
        return ((Z - self.mean).to(self.X.dtype)[:, None, :] - self.X[None, :, :]).square_()

    def diag(self) -> Any:
        return torch.zeros_like(self.X)

    def row_bytes(self, n_columns: int) -> int:
        return n_columns * int(self.X.shape[1] * self.X.element_size())

    def take(self, samples: Any) -> Differences:
        return Differences(self.X[samples], self.mean)


def pairs_on(pairs: Pairs, like: Any) -> DevicePairs:
    """Pairs of the host, on the device and in the precision of the tensor `like`."""
    if isinstance(pairs, OwnValues | Given):
        return FromHost(pairs, like)
    assert pairs.base is not None
    X: Any = pairs.X
    if sparse.issparse(X):
        if X.shape[0] * X.shape[1] > MOST_DENSE:
            return FromHost(pairs, like)
        X = X.toarray()
    points = as_tensor(X).to(like.device)
    if not pairs.base.moves:
        return Points(pairs.base, points.to(like.dtype))
    mean = points.mean(dim=0, dtype=torch.float64)
    centred = (points - mean).to(like.dtype)
    if isinstance(pairs, Distances) and sparse.issparse(pairs.X):  # their origin has been subtracted
        mean = mean + torch.as_tensor(pairs.origin).to(mean)
    return Points(pairs.base, centred, mean)


def as_tensor(values: Any) -> Any:
    """An array of the host as a tensor on the host; a read-only array, which torch refuses, is copied."""
    return torch.as_tensor(np.require(values, requirements=("C", "W")))


def positions(part: Any, n: int, device: Any) -> Any:
    """A set of samples as a tensor of positions."""
    return torch.arange(*part.indices(n), device=device) if isinstance(part, slice) else part


def _host(part: Any, n: int) -> Any:
    """A set of samples in the form that the host uses."""
    return slice(*part.indices(n)[:2]) if isinstance(part, slice) else part.cpu().numpy()


#: bytes of the base, and of the values of some kernels on some pairs, in use at a time: the size of a
#: second-level cache
PLAIN_BYTES, VALUE_BYTES = 1 << 24, 1 << 25

#: columns up to which the compiled loops hold the differences of a tile in registers
MOST_COLUMNS = 128


#: columns up to which distances are computed again for every product, and the multiple to which the number of
#: columns is padded
MOST_STREAMED, PADDING = 1024, 64

#: number of rates from one exponential and its repeated squares; factor from one rate to the next, that of
#: another exponential; and how far the rates reach beyond those that they replace
CHAIN, STEP, BEYOND = 4, 2.0 ** (1.0 / 3.0), 2.0

#: largest error of a kernel that is replaced by others: as large as its rounding
MOST_OFF = 1e-7


class Doublings(NamedTuple):
    """Gaussian kernels from few exponentials: exp(-g_k b) = sum_ql mix[k, q l] exp(r_q b)^(2^l).

    Attributes
    ----------
    rates : ndarray of shape (Q,)
        r_q.
    mix : ndarray of shape (K, Q L)
    """

    rates: FloatArray
    mix: FloatArray


@lru_cache(maxsize=64)
def doublings(rates: bytes) -> Doublings:
    """The exponentials for kernels exp(r b), b >= 0; the rates r < 0 are given as bytes.

    exp(-e^s b) is analytic in s, and bounded where |Im s| < pi / 2, so its values at s = j h determine it up
    to exp(-pi^2 / (2 h)), whatever b is: 1e-9 at h = log(2) / 3 (sinc interpolation; Stenger 1993). The
    mixture is found by least squares over many b. Where it is not good enough, or saves nothing, the kernels
    themselves are used. Each squaring of an exponential doubles its rounding, so there are few of them.
    """
    given = np.frombuffer(rates)
    low, high = -given.max() / BEYOND, -given.min() * BEYOND
    count = int(np.ceil(np.log(high / low) / np.log(STEP))) + 1
    groups = -(-count // (CHAIN * 3))
    plain = Doublings(given, np.eye(len(given)))
    if 3 * groups * 2 > len(given):
        return plain
    first = (CHAIN * 3 * np.arange(groups)[:, None] + np.arange(3)).ravel()
    powers = low * STEP ** (first[:, None] + 3 * np.arange(CHAIN)).ravel()
    b = np.append(0.0, np.geomspace(1e-4 / high, 60.0 / low, 3000))
    values, wanted = np.exp(-np.outer(b, powers)), np.exp(np.outer(b, given))
    mix = np.linalg.lstsq(values, wanted, rcond=1e-8)[0].T
    off = np.abs(values @ mix.T - wanted).max()
    return Doublings(-low * STEP**first, mix) if off <= MOST_OFF else plain


class DevicePart:
    """Functions of one base.

    Parameters
    ----------
    base : DevicePairs
    kernels : sequence of Kernel or None
        Fitted; None stands for the base itself.
    rates : ndarray of shape (K,)
        r of the kernels exp(r b) of a distance b, positive for all others.
    """

    def __init__(self, base: DevicePairs, kernels: Sequence[Kernel | None], rates: FloatArray) -> None:
        self.base, self.kernels, self.rates = base, kernels, rates
        self.n_samples, self.n_kernels = base.n_samples, len(rates)

    @property
    def unit_diagonal(self) -> bool:
        """Whether k(x, x) = 1 for all kernels."""
        return bool((self.rates <= 0).all())

    def values(self, base: Any, k: int) -> Any:
        """Kernel k from the base; it may be the base itself."""
        kernel = self.kernels[k]
        return base if kernel is None else kernel.of_base(base, torch)

    def diag(self, k: int) -> Any:
        """Values k(x_i, x_i) of kernel k."""
        return self.values(self.base.diag(), k)

    def take(self, base: DevicePairs, kernels: IntArray | None) -> DevicePart:
        """Some of the kernels, on another base."""
        chosen = range(self.n_kernels) if kernels is None else kernels.tolist()
        return DevicePart(base, [self.kernels[k] for k in chosen], self.rates[list(chosen)])

    def add(self, base: Any, factors: FloatArray, centres: FloatArray, out: Any) -> None:
        """out += sum_k factors[k] (K_k - centres[k]).

        The values of a wide kernel are all nearly the same; subtracting that value first leaves little to
        round.
        """
        loops, fast, rest = self._split(base, np.flatnonzero(factors))
        if len(fast):
            loops.add_gaussians(base, *(like(v[fast], base) for v in (-self.rates, factors, centres)), out)
        for rows in few_rows(base) if len(rest) else ():
            for k in rest:
                out[rows].add_(self.values(base[rows], k) - float(centres[k]), alpha=float(factors[k]))

    def inner(self, base: Any, centres: FloatArray, left: Any, right: Any) -> Any:
        """sum_ij (left right')_ij (K_k,ij - centres[k]) for every k, in double precision."""
        total = torch.zeros(self.n_kernels, dtype=torch.float64, device=base.device)
        loops, fast, rest = self._split(base, np.arange(self.n_kernels))
        if len(fast):
            own = (like(v[fast], base) for v in (-self.rates, centres))
            found = loops.inner_gaussians(base, *own, left, right)
            total[torch.as_tensor(fast, device=total.device)] = found
        for rows in few_rows(base) if len(rest) else ():
            for k in rest:
                product = (self.values(base[rows], k) - float(centres[k])) @ right
                total[k] += (left[rows] * product).sum(dtype=torch.float64)
        return total

    def stream(self, factors: FloatArray, centres: FloatArray) -> Callable[[Any, Any, Any], Any] | None:
        """(rows, columns, v) -> sum_k factors[k] (K_k - centres[k]) v, by loops that keep no values.

        v is of shape (n_columns, c), or (n_columns,), and in double precision, as are the sums. None where
        there are no such loops.
        """
        base, live = self.base, np.flatnonzero(factors)
        if not (isinstance(base, Points) and base.streams and (self.rates[live] < 0.0).all()):
            return None
        loops = loops_for(base.like)
        if loops is None or base.like.dtype != torch.float32:
            return None
        steps = doublings(self.rates[live].tobytes())
        powers, own = (like(v, base.like) for v in (steps.rates, factors[live] @ steps.mix))
        shift = float(factors @ centres)
        return lambda rows, columns, v: loops.stream_gaussians(
            *base.padded(rows), *base.padded(columns), powers, own, shift, v
        )

    def weigh(self, base: Any, W: Any) -> Any:
        """sum_ij W_ij K_k,ij for every k, in double precision."""
        total = torch.zeros(self.n_kernels, dtype=torch.float64, device=base.device)
        for rows in few_rows(base):
            for k in range(self.n_kernels):
                total[k] += (self.values(base[rows], k) * W[rows]).sum(dtype=torch.float64)
        return total

    def multiply(self, base: Any, centres: FloatArray, vector: Any) -> Any:
        """(K_k - centres[k]) vector for every k, shape (K, n_rows), in double precision."""
        out = torch.empty((self.n_kernels, len(base)), dtype=torch.float64, device=base.device)
        loops, fast, rest = self._split(base, np.arange(self.n_kernels))
        if len(fast):
            own = (like(v[fast], base) for v in (-self.rates, centres))
            found = loops.multiply_gaussians(base, *own, vector)
            out[torch.as_tensor(fast, device=out.device)] = found
        for rows in few_rows(base) if len(rest) else ():
            for k in rest:
                out[k, rows] = ((self.values(base[rows], k) - float(centres[k])) @ vector).double()
        return out

    def _split(self, base: Any, kernels: IntArray) -> tuple[Any, IntArray, list[int]]:
        """The compiled loops, the kernels that go through them, and the other kernels."""
        loops = loops_for(base)
        fast = (self.rates[kernels] <= 0) & (loops is not None)
        return loops, kernels[fast], kernels[~fast].tolist()


class SubsetGaussians(DevicePart):
    """exp(-gamma_k sum_{f in S_k} (x_f - z_f)^2): one product of differences and subsets for all k.

    Parameters
    ----------
    base : Differences
    subsets : tensor of uint8, shape (K, F)
        1 where a kernel sees a column.
    gammas : ndarray of shape (K,)
    """

    def __init__(self, base: DevicePairs, subsets: Any, gammas: FloatArray) -> None:
        super().__init__(base, [], -gammas)
        self.subsets, self.gammas = subsets, gammas
        self._sent: Any = None

    def values(self, base: Any, k: int) -> Any:
        return torch.exp(base @ (self.subsets[k].to(base.dtype) * -float(self.gammas[k])))

    def take(self, base: DevicePairs, kernels: IntArray | None) -> SubsetGaussians:
        if kernels is None:
            return SubsetGaussians(base, self.subsets, self.gammas)
        chosen = torch.as_tensor(np.asarray(kernels), device=self.subsets.device)
        return SubsetGaussians(base, self.subsets[chosen], self.gammas[kernels])

    def add(self, base: Any, factors: FloatArray, centres: FloatArray, out: Any) -> None:
        live = np.flatnonzero(factors)
        if len(live) == 0:
            return
        if len(live) < self.n_kernels:
            self.take(self.base, live).add(base, factors[live], centres[live], out)
            return
        pairs, own = base.reshape(-1, base.shape[-1]), like(factors, base)
        loops = self._loops(base)
        if loops is not None:
            total = loops.add_subsets(pairs, self.subsets, self._rates(base), own, like(centres, base))
        else:
            total = out.new_zeros(out.numel(), dtype=torch.float64)
            for some, values in self._pieces(base, centres):
                total += values @ own[some]
        out += total.reshape(out.shape).to(out.dtype)

    def inner(self, base: Any, centres: FloatArray, left: Any, right: Any) -> Any:
        return self.weigh(base, left @ right.T, centres)

    def weigh(self, base: Any, W: Any, centres: FloatArray | None = None) -> Any:
        flat = W.reshape(-1).to(base.dtype)
        middles = np.zeros(self.n_kernels) if centres is None else centres
        loops = self._loops(base)
        if loops is not None:
            pairs = base.reshape(-1, base.shape[-1])
            return loops.weigh_subsets(pairs, self.subsets, self._rates(base), flat, like(middles, base))
        return torch.cat([flat @ values for _, values in self._pieces(base, middles)]).double()

    def multiply(self, base: Any, centres: FloatArray, vector: Any) -> Any:
        shape, out = base.shape[:-1], []
        for _, values in self._pieces(base, centres):
            out.append(torch.einsum("ijk,j->ki", values.reshape(*shape, -1), vector))
        return torch.cat(out)

    def _pieces(self, base: Any, centres: FloatArray) -> Iterator[tuple[slice, Any]]:
        """K_k - centres[k] on all pairs, a few kernels after another, shape (n_pairs, n_kernels)."""
        pairs, rates, middles = base.reshape(-1, base.shape[-1]), self._rates(base), like(centres, base)
        step = max(1, VALUE_BYTES // max(1, len(pairs) * pairs.element_size()))
        for start in range(0, self.n_kernels, step):
            some = slice(start, min(start + step, self.n_kernels))
            exponents = self.subsets[some].to(pairs.dtype) * -rates[some][:, None]
            yield some, (pairs @ exponents.T).exp_().sub_(middles[some])

    def _loops(self, base: Any) -> Any:
        """The compiled loops, if differences are in single precision and fit into registers; else None."""
        fits = base.dtype == torch.float32 and base.shape[-1] <= MOST_COLUMNS
        return loops_for(base) if fits else None

    def _rates(self, base: Any) -> Any:
        """The gammas on the device, sent there once."""
        if self._sent is None or self._sent.dtype != base.dtype:
            self._sent = like(self.gammas, base)
        return self._sent


def part_of(shared: Shared, like: Any) -> DevicePart:
    """Kernels of the host with one base, on the device and in the precision of the tensor `like`."""
    if isinstance(shared, SharedSquares):
        points = torch.as_tensor(np.ascontiguousarray(shared.points.T)).to(like.device)
        mean, bits = points.mean(dim=0, dtype=torch.float64), shared.subsets.astype(np.uint8, copy=False)
        masks = np.unpackbits(bits, axis=1, count=len(shared.points), bitorder="little")
        differences = Differences((points - mean).to(like.dtype), mean)
        return SubsetGaussians(differences, torch.as_tensor(masks).to(like.device), np.asarray(shared.gammas))
    pure = np.where(shared.rates[:, 1:].any(axis=1), 1.0, shared.rates[:, 0])
    return DevicePart(pairs_on(shared.pairs, like), shared.kernels, pure)


def like(values: Any, tensor: Any) -> Any:
    """Numbers of the host as a tensor of the same precision and device as another; the host does not wait."""
    return as_tensor(values).to(tensor.device, tensor.dtype, non_blocking=True)


@cache
def compiled() -> Any:
    """The functions compiled by Triton, or None where it is not installed."""
    try:
        import triton  # noqa: F401
    except ImportError:
        return None
    from . import _triton_loops

    return _triton_loops


def loops_for(base: Any) -> Any:
    """The compiled functions, where they can run on that base."""
    return compiled() if base.is_cuda else None


def times(S: Any, v: Any) -> Any:
    """S v in double precision if v is; a matrix in single precision is converted as it is read."""
    if S.dtype == v.dtype:
        return S @ v
    loops = loops_for(S)
    if loops is not None:
        return loops.multiply_double(S, v)
    return torch.cat([S[rows].to(v.dtype) @ v for rows in few_rows(S)])


def few_rows(base: Any) -> list[slice]:
    """Rows of a base that stay in the cache together."""
    return tiles(len(base), max(1, PLAIN_BYTES // max(1, base.shape[1] * base.element_size())))
