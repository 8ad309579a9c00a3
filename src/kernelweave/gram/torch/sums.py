"""Weighted sums of kernels as matrices on a device, and sums and forms over M kernels, a tile at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..._backend import torch
from ..._linalg import GROWTH
from ..._typing import FloatArray, IntArray
from ..base import Gram
from ..blocks import tiles
from ..choice import show_bytes
from ..shared import count
from .parts import DevicePart, FromHost, Stored, few_rows, like, loops_for, times

#: rows of a matrix that stand for it in a preconditioner, and steps towards the least eigenvalue of these
#: rows
LANDMARKS, BISECTIONS = 4096, 6


def positive_factor(A: Any) -> Any:
    """Cholesky factor of a tensor, after adding to its diagonal what rounding may have taken away."""
    factor, failed = torch.linalg.cholesky_ex(A)
    added = len(A) * torch.finfo(A.dtype).eps * float(A.diagonal().abs().max())
    while int(failed) and np.isfinite(added):
        factor, failed = torch.linalg.cholesky_ex(
            A + added * torch.eye(len(A), dtype=A.dtype, device=A.device)
        )
        added *= GROWTH
    return factor


def least_eigenvalue(A: Any) -> float:
    """A lower estimate of the least eigenvalue of a positive definite tensor, from Cholesky factors."""
    low, high = 0.0, float(A.diagonal().min())
    every = torch.eye(len(A), dtype=A.dtype, device=A.device)
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        failed = bool(torch.linalg.cholesky_ex(A - middle * every)[1])
        low, high = (low, middle) if failed else (middle, high)
    return low


class Matrix(ABC):
    """K = S + shift 11', an n x n matrix that stays where it was made.

    The shift is about the mean of the entries: without it, entries of wide kernels differ by little more than
    rounding. Under sum(alpha) = 0 it plays no part. To solvers on the host the matrix looks like an array: K
    @ a, K[rows], K[np.ix_(rows, columns)], K.diagonal() give arrays of NumPy.

    Attributes
    ----------
    shape : (int, int)
    shift : float
    like : tensor
        A tensor of the same precision, on the same device.
    """

    #: whether its entries are at hand
    stored = True

    #: most samples for which a part of it is inverted
    most_inverted = 30_000

    #: precision of the arrays that the host gets
    dtype = np.dtype(np.float64)

    #: tells NumPy to leave products to this class
    __array_ufunc__ = None

    def __init__(self, n: int, shift: float, like: Any) -> None:
        self.shape, self.shift, self.like = (n, n), shift, like

    def __len__(self) -> int:
        return self.shape[0]

    # -- on the device ------------------------------------------------------------------------

    @abstractmethod
    def multiply(self, v: Any) -> Any:
        """S v in double precision, for a tensor v of shape (n,) or (n, c) in double precision."""

    def multiply_from(self, samples: Any, v: Any) -> Any:
        """S times a vector that is v on some samples, a tensor of positions, and zero elsewhere."""
        return self.multiply(v.new_zeros(len(self)).index_copy_(0, samples, v))

    @abstractmethod
    def part(self, samples: Any) -> Matrix:
        """The same on some samples, a tensor of positions."""

    @abstractmethod
    def rows(self, indices: Any) -> Any:
        """Rows of S, for a tensor of positions."""

    @abstractmethod
    def diag(self) -> Any:
        """Diagonal of S, in double precision."""

    def block(self, rows: Any, columns: Any) -> Any:
        """S between two sets of samples, tensors of positions."""
        return self.rows(rows)[:, columns]

    def product(self, v: Any) -> Any:
        """K v in double precision."""
        return self.multiply(v) + self.shift * v.sum(dim=0)

    def tensor(self, values: Any) -> Any:
        """Numbers of the host in the precision and on the device of this matrix."""
        return like(values, self.like)

    @cached_property
    def sketch(self) -> tuple[Any, Any]:
        """Z of shape (r, n) with K about Z'Z + v I, from some rows of K (Nystroem), and the rest of diag(K).

        Narrow kernels are nearly v I. v is the least eigenvalue of K restricted to these rows and the same
        columns: left in the matrix that Nystroem's formula inverts, it would hide the eigenvalues below it.
        """
        n = len(self)
        places = torch.linspace(0, n - 1, min(LANDMARKS, -(-n // 4)), device=self.like.device).long()
        R = self.rows(places) + self.shift
        least, every = (
            least_eigenvalue(R[:, places].double()),
            torch.arange(len(places), device=places.device),
        )
        R[every, places] -= least
        A = R[:, places].double()
        A.diagonal().add_(torch.finfo(R.dtype).eps * len(places) * A.diagonal().mean())
        Z = torch.linalg.solve_triangular(positive_factor(A).to(R.dtype), R, upper=False)
        return Z, (self.diag() + self.shift - Z.square().sum(dim=0).double()).clamp(min=0.0)

    def inverse_form(self, rows: Any, extra: FloatArray, G: FloatArray, tied: bool) -> FloatArray:
        """G' P G with P the inverse of K + diag(extra) on some samples, within {x : sum(x) = 0} when tied."""
        if len(rows) <= int(tied):
            return np.zeros((G.shape[1], G.shape[1]))
        chosen = self._positions(rows)
        A = self.block(chosen, chosen).double() + self.shift
        size = float(A.diagonal().mean())
        # in single precision, rounding can leave K slightly indefinite
        A.diagonal().add_(torch.as_tensor(extra, device=A.device) + 1e-7 * size)
        right = torch.as_tensor(np.column_stack([G, np.ones(len(G))]), device=A.device)
        solved = torch.cholesky_solve(right, positive_factor(A))
        form, ones = right[:, :-1].T @ solved[:, :-1], solved[:, -1]
        if tied:
            shift = right[:, :-1].T @ ones
            form = form - torch.outer(shift, shift) / ones.sum()
        return np.asarray(form.cpu().numpy())

    # -- for the host -------------------------------------------------------------------------

    def __matmul__(self, v: FloatArray) -> FloatArray:
        found = self.product(torch.as_tensor(np.ascontiguousarray(v), device=self.like.device))
        return np.asarray(found.cpu().numpy())

    def __getitem__(self, key: Any) -> FloatArray:
        rows, columns = key if isinstance(key, tuple) else (key, slice(None))
        part = self.rows(self._positions(rows))[:, self._positions(columns)]
        return np.asarray(part.double().cpu().numpy()) + self.shift

    def _positions(self, key: Any) -> Any:
        if isinstance(key, slice):
            return torch.arange(*key.indices(len(self)), device=self.like.device)
        return torch.as_tensor(np.atleast_1d(np.asarray(key)).ravel(), device=self.like.device)

    def diagonal(self) -> FloatArray:
        return np.asarray(self.diag().double().cpu().numpy()) + self.shift

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return self[np.arange(len(self))].astype(dtype or np.float64, copy=False)


class StoredMatrix(Matrix):
    """A matrix held on the device.

    Parameters
    ----------
    S : tensor of shape (n, n)
    shift : float
    """

    def __init__(self, S: Any, shift: float) -> None:
        super().__init__(len(S), shift, S[:0])
        self.S = S

    def multiply(self, v: Any) -> Any:
        return times(self.S, v)

    def multiply_from(self, samples: Any, v: Any) -> Any:
        loops = loops_for(self.S) if self.S.dtype == torch.float32 else None
        few = 2 * len(samples) < len(self)
        return loops.multiply_some(self.S, samples, v) if loops and few else super().multiply_from(samples, v)

    def rows(self, indices: Any) -> Any:
        return self.S[indices]

    def block(self, rows: Any, columns: Any) -> Any:
        out = self.S.new_empty((len(rows), len(columns)))
        for some in few_rows(self.S[: len(rows)]):
            out[some] = self.S[rows[some]][:, columns]
        return out

    def part(self, samples: Any) -> StoredMatrix:
        return StoredMatrix(self.block(samples, samples), self.shift)

    def diag(self) -> Any:
        return self.S.diagonal()


class ComputedMatrix(Matrix):
    """A matrix too large for memory: its entries are computed whenever they are asked for.

    Parameters
    ----------
    gram : Sums
    factors : ndarray of shape (M,)
        S = sum_m factors[m] (K'_m - centres[m]), see `Sums`.
    """

    stored = False

    def __init__(self, gram: Sums, factors: FloatArray) -> None:
        super().__init__(gram.n_samples, gram._shift(factors), gram.kind)
        self.gram, self.factors, self.every = gram, factors, gram._every
        self.stream = gram._stream(factors)

    def rows(self, indices: Any) -> Any:
        return self.block(indices, slice(0, len(self)))

    def block(self, rows: Any, columns: Any) -> Any:
        return self.gram._sum(rows, columns, self.factors)

    def multiply(self, v: Any) -> Any:
        return self.stream(self.every, self.every, v)

    def multiply_from(self, samples: Any, v: Any) -> Any:
        return self.stream(self.every, samples, v) if len(samples) else v.new_zeros(len(self))

    def diag(self) -> Any:
        return self.gram._diag(self.factors) - self.shift

    def part(self, samples: Any) -> Matrix:
        part: Matrix = self.gram.subset(samples.cpu().numpy())._matrix(self.factors)
        return part

    def __matmul__(self, v: FloatArray) -> FloatArray:
        """K v, from only the samples where v is not zero."""
        support = np.flatnonzero(v.reshape(len(self), -1).any(axis=1))
        a = torch.as_tensor(v[support], device=self.like.device)
        found = self.stream(self.every, self._positions(support), a) + self.shift * a.sum(dim=0)
        return np.asarray(found.cpu().numpy())


#: bytes of a base in use at a time
WORK_BYTES = 1 << 30

#: least number of tiles for the lower triangle, because what they cover above it is computed in vain; and
#: fewest rows of a tile, since smaller ones save no time
LEAST_TILES, FEW = 8, 2000

#: share of the free memory that one matrix may take, and that one base kept for later may take
MATRIX_SHARE, BASE_SHARE = 0.45, 0.25

#: number of rows from which the mean of the entries of a kernel is computed
MEAN_ROWS = 256


class Constants:
    """What turns raw kernels into normalised ones; see `TorchGram`.

    Parameters
    ----------
    scales : ndarray of shape (M,)
    roots, means : ndarray of shape (M, n) or None
    grands : ndarray of shape (M,) or None
    centres : ndarray of shape (M,)
        About the mean of r_i r_j k_ij.
    """

    def __init__(self, scales: FloatArray, roots: Any, means: Any, grands: Any, centres: Any) -> None:
        self.scales, self.roots, self.means, self.grands = scales, roots, means, grands
        self.centres: FloatArray = centres

    def take(self, samples: IntArray | None, kernels: IntArray | None) -> Constants:
        """The constants of some kernels, on some samples."""
        chosen = slice(None) if kernels is None else kernels
        every = slice(None) if samples is None else samples
        roots, means = (None if grid is None else grid[chosen][:, every] for grid in (self.roots, self.means))
        grands = None if self.grands is None else self.grands[chosen]
        return Constants(self.scales[chosen], roots, means, grands, self.centres[chosen])


class Sums(Gram):
    """The kernels of a `TorchGram`, and what it adds up.

    Attributes
    ----------
    parts : list of DevicePart
    members : list of ndarray of int
        Which of the M kernels each part has.
    constants : Constants
    kind : tensor
        A tensor with the precision and device of everything here.
    limit : int or None
        Bytes of the device that may be taken.
    """

    limit: int | None

    def _set(
        self, parts: list[DevicePart], members: Sequence[IntArray], constants: Constants, kind: Any
    ) -> None:
        self.parts, self.members, self.constants, self.kind = parts, list(members), constants, kind
        self.n_samples, self.n_kernels = parts[0].n_samples, len(constants.scales)
        self.n_passes = 0.0
        self._kept: dict[int, Any] = {}
        self._fine: Any = None  # the same in double precision
        # a part that has all kernels needs no copy of them: there may be a million
        self._places: list[Any] = [slice(None)] if len(parts) == 1 else self.members

    # -- sums ---------------------------------------------------------------------------------

    def _whole(self, factors: FloatArray) -> Any:
        """S on all samples, computed from its lower triangle."""
        n = self.n_samples
        S = torch.empty((n, n), dtype=self.kind.dtype, device=self.kind.device)
        for rows, columns in self._lower():
            S[rows, columns] = self._sum(rows, columns, factors, keep=True)
            S[: rows.start, rows] = S[rows, : rows.start].T
        return S

    def _matrix(self, factors: FloatArray) -> Matrix:
        """S + shift 11', stored if it fits."""
        if self.n_samples**2 * self.kind.element_size() > self._room(MATRIX_SHARE):
            return ComputedMatrix(self, factors)
        return StoredMatrix(self._whole(factors), self._shift(factors))

    def _stream(self, factors: FloatArray) -> Callable[[Any, Any, Any], Any]:
        """(rows, columns, v) -> S v between two sets of samples, tensors of positions, in double precision.

        By loops that keep no entry, if all kernels have such loops; otherwise one tile of S after another.
        """
        live = [(part, factors[place], self.constants.centres[place]) for part, place in self._placed()]
        live = [one for one in live if one[1].any()]
        plain = self.constants.roots is None and self.constants.means is None
        found = [part.stream(own, centres) for part, own, centres in live] if plain else []
        streams = [stream for stream in found if stream is not None]
        if live and len(streams) == len(live):
            return lambda rows, columns, v: sum(stream(rows, columns, v) for stream in streams)
        return partial(self._tiled, factors)

    def _tiled(self, factors: FloatArray, rows: Any, columns: Any, v: Any) -> Any:
        pieces = self._tiles(len(rows), len(columns))
        return torch.cat([times(self._sum(rows[some], columns, factors), v) for some in pieces])

    def _placed(self) -> Iterator[tuple[DevicePart, Any]]:
        return zip(self.parts, self._places, strict=True)

    def _sum(self, rows: Any, columns: Any, factors: FloatArray, keep: bool = False) -> Any:
        """sum_m factors[m] (K'_m - centres[m]) between two sets of samples."""
        constants, shape = self.constants, (count(rows), count(columns))
        out = torch.zeros(shape, dtype=self.kind.dtype, device=self.kind.device)
        for index, (part, members) in enumerate(zip(self.parts, self.members, strict=True)):
            place = self._places[index]
            own = factors[place]
            if not own.any():
                continue
            base = self._base(index, rows, columns, keep)
            if constants.roots is None:
                part.add(base, own, constants.centres[place], out)
                continue
            for k in np.flatnonzero(own).tolist():
                root = self._tensor(constants.roots[members[k]])
                values = part.values(base, k) * root[rows][:, None] * root[columns]
                out.add_(values - float(constants.centres[members[k]]), alpha=float(own[k]))
        if constants.means is not None:
            shift = self._tensor(factors @ constants.means)
            out -= shift[rows][:, None] + shift[columns] - float(factors @ constants.grands)
        return out

    def _forms(self, alpha: FloatArray) -> FloatArray:
        """alpha' K_m alpha on all samples."""
        total = torch.zeros(self.n_kernels, dtype=torch.float64, device=self.kind.device)
        a = self._tensor(alpha)
        for rows, columns in self._lower():
            right = a[columns].clone()
            right[: rows.start] *= 2.0
            self._each(total, rows, columns, (a[rows], right))
        sums = alpha.sum(axis=0)
        found = np.asarray(total.cpu().numpy()) + self.constants.centres * float(sums @ sums)
        if self.constants.means is None:
            return np.asarray(self.constants.scales * found)
        shifts = 2.0 * (self.constants.means @ alpha) @ sums
        grands = self.constants.grands * float(sums @ sums)
        return np.asarray(self.constants.scales * (found - shifts + grands))

    def _each(self, total: Any, rows: slice, columns: slice, W: Any) -> None:
        """total_m += sum_ij W_ij r_mi r_mj k_m,ij; for W in two factors, k_m less its centre."""
        for index, (part, members) in enumerate(zip(self.parts, self.members, strict=True)):
            base = self._base(index, rows, columns, keep=False)
            if self.constants.roots is None:
                place = self._places[index]
                centres = self.constants.centres[place]
                found = part.inner(base, centres, *W) if isinstance(W, tuple) else part.weigh(base, W)
                total[place if isinstance(place, slice) else self._positions(place)] += found
                continue
            full = W[0] @ W[1].T if isinstance(W, tuple) else W
            for k, m in enumerate(members.tolist()):
                root = self._tensor(self.constants.roots[m])
                scaled = part.values(base, k) * root[rows][:, None] * root[columns]
                centre = float(self.constants.centres[m]) if isinstance(W, tuple) else 0.0
                total[m] += ((scaled - centre) * full).sum(dtype=torch.float64)

    def _sums(self, W: Any) -> tuple[FloatArray, float]:
        """W 1, and 1' W 1, of a symmetric matrix."""
        lines = W.sum(dim=1, dtype=torch.float64)
        return np.asarray(lines.cpu().numpy()), float(lines.sum())

    def _scaled(self, total: FloatArray, lines: FloatArray, whole: float) -> FloatArray:
        """tr(W K_m) from tr(W rr'k_m)."""
        constants = self.constants
        if constants.means is None:
            return np.asarray(constants.scales * total)
        total = total - 2.0 * constants.means @ lines + constants.grands * whole
        return np.asarray(constants.scales * total)

    def _diag(self, factors: FloatArray) -> Any:
        out, constants = (
            torch.zeros(self.n_samples, dtype=torch.float64, device=self.kind.device),
            self.constants,
        )
        for part, members in zip(self.parts, self.members, strict=True):
            own = factors[members]
            if constants.roots is None and part.unit_diagonal:
                out += float(own.sum())
                continue
            for k in np.flatnonzero(own).tolist():
                values = part.diag(k).double()
                if constants.roots is not None:
                    values = values * self._double(constants.roots[members[k]]) ** 2
                out += float(own[k]) * values
        if constants.means is not None:
            out += float(factors @ constants.grands) - 2.0 * self._double(factors @ constants.means)
        return out

    # -- bases --------------------------------------------------------------------------------

    def _base(self, index: int, rows: Any, columns: Any, keep: bool) -> Any:
        """The base of a part between two sets of samples; kept for the next sum where there is room."""
        base = self.parts[index].base
        if base.stored or not keep:
            return base.part(rows, columns)
        whole = self._kept.get(index)
        if whole is None:
            if base.row_bytes(self.n_samples) * self.n_samples > self._room(BASE_SHARE):
                return base.part(rows, columns)
            whole = self._kept[index] = self._fill(base)
        return whole[rows, columns]

    def _fill(self, base: Any) -> Any:
        every = slice(0, self.n_samples)
        return torch.cat([base.part(rows, every) for rows in self._tiles(self.n_samples, self.n_samples)])

    def _keep_given(self) -> None:
        """Compute once what only the host can compute, if there is room."""
        for part in self.parts:
            needed = self.n_samples**2 * self.kind.element_size()
            if isinstance(part.base, FromHost) and needed <= self._room(BASE_SHARE):
                part.base = Stored(self._fill(part.base))

    def mean_entries(self) -> FloatArray:
        """About the mean of r_i r_j k_ij, from some rows; 0 where kernels are centred."""
        n, found = self.n_samples, np.zeros(self.n_kernels)
        if self.constants.means is not None:
            return found
        rows = self._positions(np.unique(np.linspace(0, n - 1, min(n, MEAN_ROWS)).astype(int)))
        ones = torch.ones((len(rows), 1), dtype=self.kind.dtype, device=self.kind.device)
        total = torch.zeros(self.n_kernels, dtype=torch.float64, device=self.kind.device)
        self.constants.centres = found
        self._each(total, rows, rows, (ones, ones))
        return np.asarray(total.cpu().numpy()) / len(rows) ** 2

    # -- tiles and numbers --------------------------------------------------------------------

    def _lower(self) -> Iterator[tuple[slice, slice]]:
        """Tiles of some rows, and all columns up to the last of these rows."""
        least = max(1, min(LEAST_TILES, -(-self.n_samples // FEW)))
        for rows in self._tiles(self.n_samples, self.n_samples, least):
            yield rows, slice(0, rows.stop)

    def _tiles(self, n_rows: int, n_columns: int, least: int = 1) -> list[slice]:
        """Rows in pieces whose bases and sum fit into the working memory."""
        widest = max(part.base.row_bytes(n_columns) for part in self.parts)
        step = max(1, int(min(WORK_BYTES, self._room(BASE_SHARE)) // max(1, widest)))
        return tiles(n_rows, min(step, max(1, -(-n_rows // least))))

    def _room(self, share: float) -> float:
        """Bytes that one matrix or base may take."""
        if self.limit is None:
            return np.inf
        needed = LEAST_TILES * max(part.base.row_bytes(self.n_samples) for part in self.parts)
        if share * self.limit < needed:
            raise MemoryError(
                f"{self.n_samples} samples need {show_bytes(needed / share)} on {self.kind.device}, there "
                f"are {show_bytes(self.limit)}: {show_bytes(needed / share - self.limit)} are missing. Free "
                "memory of the device, raise memory_limit, use fewer samples, or device=None."
            )
        return share * self.limit

    def _factors(self, weights: FloatArray) -> FloatArray:
        return np.asarray(weights, dtype=np.float64) * self.constants.scales

    def _shift(self, factors: FloatArray) -> float:
        return float(factors @ self.constants.centres)

    @property
    def _every(self) -> Any:
        return torch.arange(self.n_samples, device=self.kind.device)

    def _positions(self, samples: IntArray) -> Any:
        return torch.as_tensor(np.array(samples), device=self.kind.device)

    def _tensor(self, values: Any) -> Any:
        return like(values, self.kind)

    def _double(self, values: Any) -> Any:
        return torch.as_tensor(np.ascontiguousarray(values), device=self.kind.device).double()
