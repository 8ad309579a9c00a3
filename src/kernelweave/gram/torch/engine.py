"""M Gram matrices on a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import numpy as np

from ..._backend import free_bytes, torch
from ..._typing import FloatArray, IntArray
from ..base import Gram
from ..blocks import Blocks
from ..memory import show_bytes
from .bases import FromHost, Stored
from .convert import part_of
from .matrix import ComputedMatrix, Matrix, StoredMatrix
from .parts import DevicePart, like

#: bytes of a base at work at a time
WORK_BYTES = 1 << 30

#: at least so many tiles to the lower triangle: what they cover above it is computed for nothing
LEAST_TILES = 8

#: share of the free memory that one matrix, and one base kept for later, may take
MATRIX_SHARE, BASE_SHARE = 0.45, 0.25

#: rows from which the mean of the entries of a kernel is taken
MEAN_ROWS = 256

#: samples up to which weighted sums go to the host, whose machines are faster there
HOST_SAMPLES = 1024


class TorchGram(Gram):
    """M Gram matrices on a device of torch, computed from what the kernels share.

    Kernels that share distances or inner products go through them in one pass; never are M
    matrices stored. Entries are computed in single precision (or as `dtype` says), sums that the
    certificate needs are taken in double precision. What `combine` returns stays on the device.

        K_m = scales[m] (r_mi r_mj k_m,ij - u_mi - u_mj + c_m)

    Parameters
    ----------
    blocks : Blocks
        The kernels, and r, u, c.
    scales : ndarray of shape (M,), optional
    device : torch.device
    dtype : torch.dtype, optional
        float32 by default.
    memory_limit : int, optional
        Bytes of the device that may be taken; by default what is free.
    host_sums : bool, default=False
        Whether `combine` returns arrays of the host whatever their size.

    Examples
    --------
    >>> torch = __import__("pytest").importorskip("torch")
    >>> blocks = Blocks.of_matrices([np.eye(2), np.ones((2, 2))])
    >>> TorchGram(blocks, device=torch.device("cpu")).quad(np.array([1.0, 1.0]))
    array([2., 4.])
    """

    name = "torch"
    streams = True

    def __init__(
        self,
        blocks: Blocks,
        scales: FloatArray | None = None,
        device: Any = None,
        dtype: Any = None,
        memory_limit: int | None = None,
        host_sums: bool = False,
    ) -> None:
        device = torch.device("cpu") if device is None else device
        kind = torch.empty(0, dtype=torch.float32 if dtype is None else dtype, device=device)
        scales = np.ones(blocks.n_kernels) if scales is None else np.asarray(scales, dtype=np.float64)
        constants = Constants(scales, blocks.roots, blocks.means, blocks.grands, None)
        # what is free now bounds all that follows: asking the device every time takes its time
        bounds = [bound for bound in (memory_limit, free_bytes(device)) if bound is not None]
        self.limit, self.host_sums = min(bounds, default=None), host_sums
        self._set([part_of(part, kind) for part in blocks.parts], blocks.members, constants, kind)
        self._keep_given()
        self.constants.centres = self.mean_entries()

    def _set(
        self, parts: list[DevicePart], members: Sequence[IntArray], constants: Constants, kind: Any
    ) -> None:
        self.parts, self.members, self.constants, self.kind = parts, list(members), constants, kind
        self.n_samples, self.n_kernels = parts[0].n_samples, len(constants.scales)
        self.n_passes = 0.0
        self._kept: dict[int, Any] = {}

    # -- the interface ------------------------------------------------------------------------

    def combine(self, weights: FloatArray) -> Any:
        n, factors = self.n_samples, self._factors(weights)
        self._count(0.5, factors)
        if self.host_sums or n <= HOST_SAMPLES:
            S = self._whole(factors)
            return np.asarray(S.double().cpu().numpy()) + self._shift(factors)
        if n * n * self.kind.element_size() > self._room(MATRIX_SHARE):
            return self._computed(factors)
        return StoredMatrix(self._whole(factors), self._shift(factors))

    def dot(self, weights: FloatArray, alpha: FloatArray, rows: IntArray | None = None) -> FloatArray:
        factors, columns = self._factors(weights), alpha.reshape(self.n_samples, -1)
        support = np.flatnonzero(columns.any(axis=1))
        chosen = np.arange(self.n_samples) if rows is None else np.asarray(rows)
        out = torch.zeros((len(chosen), columns.shape[1]), dtype=torch.float64, device=self.kind.device)
        if len(support) and len(chosen):
            left, right = self._positions(chosen), self._positions(support)
            a = self._tensor(columns[support])
            for some in self._tiles(len(chosen), len(support)):
                out[some] = (self._sum(left[some], right, factors) @ a).double()
        self._count(len(chosen) * len(support) / self.n_samples**2, factors)
        found = np.asarray(out.cpu().numpy()) + self._shift(factors) * columns.sum(axis=0)
        return np.asarray(found.reshape(len(chosen), *alpha.shape[1:]))

    def dots(self, weights: FloatArray, alpha: FloatArray, rows: IntArray) -> FloatArray:
        live = np.flatnonzero(weights.any(axis=0))
        if self.constants.roots is not None or self.constants.means is not None or len(live) == 0:
            return super().dots(weights, alpha, rows)
        part, support, chosen = self.subset(kernels=live), np.flatnonzero(alpha), self._positions(rows)
        right, a = self._positions(support), self._tensor(alpha[support])
        each = np.zeros((len(live), len(rows)))
        for some in self._tiles(len(rows), max(1, len(support))):
            each[:, some] = part._multiplied(chosen[some], right, a)
        constants = part.constants
        each += constants.centres[:, None] * float(alpha.sum())
        self._count(len(rows) * len(support) / self.n_samples**2, np.abs(weights).sum(axis=0))
        return np.asarray(((weights[:, live] * constants.scales) @ each).T)

    def _multiplied(self, rows: Any, columns: Any, vector: Any) -> FloatArray:
        """(k_m - centres[m]) v between two sets of samples, for every m."""
        out = np.empty((self.n_kernels, len(rows)))
        for part, members in zip(self.parts, self.members, strict=True):
            found = part.multiply(part.base.part(rows, columns), self.constants.centres[members], vector)
            out[members] = found.double().cpu().numpy()
        return out

    def quad(self, alpha: FloatArray, kernels: IntArray | None = None) -> FloatArray:
        if kernels is not None:
            return self.subset(kernels=kernels).quad(alpha)
        columns = alpha.reshape(self.n_samples, -1)
        support = np.flatnonzero(columns.any(axis=1))
        total: FloatArray = np.zeros(self.n_kernels)
        if len(support):
            part = self if len(support) == self.n_samples else self.subset(support)
            total = part._forms(columns[support])
        self._count(0.5 * (len(support) / self.n_samples) ** 2, np.ones(self.n_kernels))
        return total

    def inner(self, A: Any) -> FloatArray:
        W = A.rows(self._every) + A.shift if isinstance(A, Matrix) else self._tensor(A)
        total = torch.zeros(self.n_kernels, dtype=torch.float64, device=self.kind.device)
        for rows, columns in self._lower():
            tile = W[rows, columns].clone()
            tile[:, : rows.start] *= 2.0
            self._each(total, rows, columns, tile)
        self._count(0.5, self.constants.scales)
        return self._scaled(np.asarray(total.cpu().numpy()), *self._sums(W))

    def rows(self, indices: IntArray, weights: FloatArray) -> FloatArray:
        factors, chosen = self._factors(weights), self._positions(np.asarray(indices, dtype=int))
        out = np.empty((len(chosen), self.n_samples))
        for some in self._tiles(len(chosen), self.n_samples):
            out[some] = self._sum(chosen[some], slice(0, self.n_samples), factors).cpu().numpy()
        out += self._shift(factors)
        self._count(len(chosen) / self.n_samples, factors)
        return out

    def diag(self, weights: FloatArray) -> FloatArray:
        return np.asarray(self._diag(self._factors(weights)).cpu().numpy())

    def subset(self, samples: IntArray | None = None, kernels: IntArray | None = None) -> Self:
        chosen = None if kernels is None else np.asarray(kernels)
        rows = None if samples is None else self._positions(np.asarray(samples))
        parts, members = [], []
        for part, group in zip(self.parts, self.members, strict=True):
            own, inside = _among(group, chosen, self.n_kernels)
            if len(inside):
                base = part.base if rows is None else part.base.take(rows)
                parts.append(part.take(base, own))
                members.append(inside)
        found = object.__new__(type(self))
        found.limit, found.host_sums = self.limit, self.host_sums
        found._set(parts, members, self.constants.take(samples, chosen), self.kind)
        return found

    def products(self, vector: FloatArray) -> FloatArray:
        """k_m v for every m, raw: neither scaled nor centred; shape (M, n)."""
        out, v = np.empty((self.n_kernels, self.n_samples)), self._tensor(vector)
        for rows in self._tiles(self.n_samples, self.n_samples):
            for part, members in zip(self.parts, self.members, strict=True):
                base, none = part.base.part(rows, slice(0, self.n_samples)), np.zeros(part.n_kernels)
                found = part.multiply(base, none, v)
                out[members, rows] = found.double().cpu().numpy()
        return out

    def mean_diagonals(self, share: FloatArray) -> FloatArray:
        """sum_i share_i k_m(x_i, x_i) for every m, raw."""
        out, v = np.full(self.n_kernels, float(share.sum())), self._double(share)
        for part, members in zip(self.parts, self.members, strict=True):
            if not part.unit_diagonal:
                out[members] = [float(part.diag(k).double() @ v) for k in range(part.n_kernels)]
        return out

    # -- sums ---------------------------------------------------------------------------------

    def _whole(self, factors: FloatArray) -> Any:
        """S on all samples, by its lower triangle."""
        n = self.n_samples
        S = torch.empty((n, n), dtype=self.kind.dtype, device=self.kind.device)
        for rows, columns in self._lower():
            S[rows, columns] = self._sum(rows, columns, factors, keep=True)
            S[: rows.start, rows] = S[rows, : rows.start].T
        return S

    def _computed(self, factors: FloatArray) -> Matrix:
        """S that fits nowhere."""
        every, shift = slice(0, self.n_samples), self._shift(factors)
        diagonal = (self._diag(factors) - shift).to(self.kind.dtype)
        return ComputedMatrix(lambda rows: self._sum(rows, every, factors), diagonal, shift)

    def _sum(self, rows: Any, columns: Any, factors: FloatArray, keep: bool = False) -> Any:
        """sum_m factors[m] (K'_m - centres[m]) between two sets of samples."""
        constants, out = self.constants, None
        for index, (part, members) in enumerate(zip(self.parts, self.members, strict=True)):
            own = factors[members]
            if not own.any():
                continue
            base = self._base(index, rows, columns, keep)
            if out is None:
                shape = (_length(rows), _length(columns))
                out = torch.zeros(shape, dtype=self.kind.dtype, device=self.kind.device)
            if constants.roots is None:
                part.add(base, own, constants.centres[members], out)
                continue
            for k in np.flatnonzero(own).tolist():
                root = self._tensor(constants.roots[members[k]])
                values = part.values(base, k) * root[rows][:, None] * root[columns]
                out.add_(values - float(constants.centres[members[k]]), alpha=float(own[k]))
        if out is None:
            out = torch.zeros(
                (_length(rows), _length(columns)), dtype=self.kind.dtype, device=self.kind.device
            )
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
        """total_m += sum_ij W_ij r_mi r_mj k_m,ij; for two factors of W, less the centres of the kernels."""
        for index, (part, members) in enumerate(zip(self.parts, self.members, strict=True)):
            base = self._base(index, rows, columns, keep=False)
            if self.constants.roots is None:
                centres = self.constants.centres[members]
                found = part.inner(base, centres, *W) if isinstance(W, tuple) else part.weigh(base, W)
                total[torch.as_tensor(members, device=total.device)] += found
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
        """What only the host can compute is computed once, where there is room."""
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
        """Rows, and all columns up to the last of them."""
        for rows in self._tiles(self.n_samples, self.n_samples, LEAST_TILES):
            yield rows, slice(0, rows.stop)

    def _tiles(self, n_rows: int, n_columns: int, least: int = 1) -> list[slice]:
        """Rows in pieces whose bases, and sum, fit into the working memory."""
        widest = max(part.base.row_bytes(n_columns) for part in self.parts)
        step = max(1, int(min(WORK_BYTES, self._room(BASE_SHARE)) // max(1, widest)))
        step = min(step, max(1, -(-n_rows // least)))
        return [slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step)]

    def _room(self, share: float) -> float:
        """Bytes that one thing may take."""
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
        return torch.as_tensor(samples, device=self.kind.device)

    def _tensor(self, values: Any) -> Any:
        return like(values, self.kind)

    def _double(self, values: Any) -> Any:
        return torch.as_tensor(np.ascontiguousarray(values), device=self.kind.device).double()

    def _count(self, share: float, factors: FloatArray) -> None:
        self.n_passes += share * np.count_nonzero(factors) / self.n_kernels


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
        """Those of some kernels, on some samples."""
        chosen = slice(None) if kernels is None else kernels
        every = slice(None) if samples is None else samples
        roots, means = (None if grid is None else grid[chosen][:, every] for grid in (self.roots, self.means))
        grands = None if self.grands is None else self.grands[chosen]
        return Constants(self.scales[chosen], roots, means, grands, self.centres[chosen])


def _among(group: IntArray, chosen: IntArray | None, n_kernels: int) -> tuple[IntArray | None, IntArray]:
    """Which of a group are chosen (None: all), and where they stand among the chosen."""
    if chosen is None:
        return None, group
    where = np.full(n_kernels, -1)
    where[group] = np.arange(len(group))
    inside = np.flatnonzero(where[chosen] >= 0)
    return where[chosen[inside]], inside


def _length(part: Any) -> int:
    return part.stop - part.start if isinstance(part, slice) else len(part)
