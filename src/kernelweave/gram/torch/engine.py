"""M Gram matrices on a device."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np

from ..._backend import free_bytes, torch
from ..._typing import FloatArray, IntArray
from ...kernels import Normalization, resolve_normalization
from ...kernels.normalize import Variance
from ..base import MOST_DIAGONALS, Gram
from ..blocked import Unrounded
from ..blocks import Blocks, among, normalised
from ..choice import EngineChoice, Needs, Task
from .parts import part_of
from .sums import Constants, Matrix, Sums

if TYPE_CHECKING:
    from ..dictionary import Kernels

#: up to this many samples, weighted sums go to the host, where their machines are faster
HOST_SAMPLES = 1024


class TorchGram(Sums):
    """M Gram matrices on a device of torch, computed from what the kernels share.

    Kernels that share distances or inner products are computed from them in one pass; the M matrices are
    never stored. Entries are computed in single precision (or as `dtype` says), sums of them in double where
    that costs little; `in_double` gives the same engine in double precision throughout. The result of
    `combine` stays on the device.

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
        Whether `combine` returns arrays on the host, whatever their size.

    Examples
    --------
    >>> torch = __import__("pytest").importorskip("torch")
    >>> blocks = Blocks.of_matrices([np.eye(2), np.ones((2, 2))])
    >>> TorchGram(blocks, device=torch.device("cpu")).quad(np.array([1.0, 1.0]))
    array([2., 4.])
    """

    name = "torch"
    bounded = False
    streams = True
    portable = False  # it is on a device that other processes may not have

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
        # what is free now is the limit from here on: asking the device every time is slow
        bounds = [bound for bound in (memory_limit, free_bytes(device)) if bound is not None]
        self.limit, self.host_sums = min(bounds, default=None), host_sums
        self._open(Unrounded(blocks), constants, kind)
        self.constants.centres = self.mean_entries()

    @classmethod
    def needs(cls, task: Task) -> Needs:
        if task.device is None:
            return Needs(None, "it computes on a device; pass device='cuda', or 'torch:cpu' for torch's CPU.")
        return Needs(0, "kernels are computed there")  # whether memory is missing shows only tile by tile

    @classmethod
    def build(cls, kernels: Kernels, choice: EngineChoice) -> tuple[Gram, Sequence[Normalization], IntArray]:
        """Compute the kernels on the device, and normalise them there."""
        raw, task = kernels.checked(), choice.task
        dtype = torch.float64 if task.double else torch.float32
        gram = cls(raw, None, task.device, dtype, task.limit, task.host_sums)
        rules, scales = fit_on_device(raw, kernels.normalize, kernels.sample_weight, gram)
        live = kernels.live(scales)
        return gram if len(live) == len(scales) else gram.subset(kernels=live), rules, live

    def _open(self, origin: Unrounded, constants: Constants, kind: Any) -> None:
        """Send the kernels to the device."""
        blocks, self.origin = origin.found(), origin
        self._set([part_of(part, kind) for part in blocks.parts], blocks.members, constants, kind)
        self._keep_given()

    @property
    def scales(self) -> FloatArray:  # type: ignore[override]
        return self.constants.scales

    @property
    def rounds(self) -> bool:
        return bool(self.kind.dtype != torch.float64)

    def in_double(self) -> Gram | None:
        if not self.rounds:
            return None
        self._kept.clear()  # room for the same in double precision
        if self._fine is None:  # several models ask for it
            self._fine = found = object.__new__(type(self))
            found.limit, found.host_sums = self.limit, self.host_sums
            found._open(self.origin, self.constants, self.kind.double())
        fine: Gram = self._fine.subset()
        return fine

    # -- the interface ------------------------------------------------------------------------

    def combine(self, weights: FloatArray) -> Any:
        n, factors = self.n_samples, self._factors(weights)
        self._count(0.5, factors)
        if self.host_sums or n <= HOST_SAMPLES:
            S = self._whole(factors)
            return np.asarray(S.double().cpu().numpy()) + self._shift(factors)
        return self._matrix(factors)

    def square(self, samples: IntArray, weights: FloatArray) -> Any:
        """The part stays on the device, whatever its size: `Matrix.inverse_form` is faster there."""
        part, factors = self.subset(samples), self._factors(weights)
        self._count(0.5 * (part.n_samples / self.n_samples) ** 2, factors)
        return part._matrix(factors)

    def _diagonals(self) -> FloatArray:
        constants = self.constants
        plain = constants.roots is None and constants.means is None
        if plain and self.n_kernels <= MOST_DIAGONALS and all(part.unit_diagonal for part in self.parts):
            return constants.scales[:, None]
        return super()._diagonals()

    def dot(self, weights: FloatArray, alpha: FloatArray, rows: IntArray | None = None) -> FloatArray:
        factors, columns = self._factors(weights), alpha.reshape(self.n_samples, -1)
        support = np.flatnonzero(columns.any(axis=1))
        chosen = np.arange(self.n_samples) if rows is None else np.asarray(rows)
        out = torch.zeros((len(chosen), columns.shape[1]), dtype=torch.float64, device=self.kind.device)
        if len(support) and len(chosen):
            left, right = self._positions(chosen), self._positions(support)
            out = self._stream(factors)(left, right, self._double(columns[support]))
        self._count(len(chosen) * len(support) / self.n_samples**2, factors)
        found = np.asarray(out.cpu().numpy()) + self._shift(factors) * columns.sum(axis=0)
        return np.asarray(found.reshape(len(chosen), *alpha.shape[1:]))

    def products(
        self, alpha: FloatArray, kernels: IntArray | None = None, rows: IntArray | None = None
    ) -> FloatArray:
        live = np.arange(self.n_kernels) if kernels is None else np.asarray(kernels)
        if self.constants.roots is not None or self.constants.means is not None or len(live) == 0:
            return super().products(alpha, kernels, rows)
        part = self if kernels is None else self.subset(kernels=live)
        wanted = np.arange(self.n_samples) if rows is None else np.asarray(rows)
        support, chosen = np.flatnonzero(alpha), self._positions(wanted)
        right, a = self._positions(support), self._tensor(alpha[support])
        each = np.zeros((len(live), len(wanted)))
        for some in self._tiles(len(wanted), max(1, len(support))):
            each[:, some] = part._multiplied(chosen[some], right, a)
        constants = part.constants
        each += constants.centres[:, None] * float(alpha.sum())
        self._count(len(wanted) * len(support) / self.n_samples**2, np.ones(len(live)))
        return np.asarray(constants.scales[:, None] * each)

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
            own, inside = among(group, chosen, self.n_kernels)
            if len(inside):
                base = part.base if rows is None else part.base.take(rows)
                parts.append(part.take(base, own))
                members.append(inside)
        found = object.__new__(type(self))
        found.limit, found.host_sums = self.limit, self.host_sums
        found.origin = self.origin.take(None if samples is None else np.asarray(samples), chosen)
        found._set(parts, members, self.constants.take(samples, chosen), self.kind)
        return found

    def raw_products(self, vector: FloatArray) -> FloatArray:
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


class ScaledRules(Sequence[Normalization]):
    """Normalisations of many kernels that only scale; each is made when it is asked for.

    Parameters
    ----------
    rule : Normalization
    scales : ndarray of shape (M,)
    """

    def __init__(self, rule: Normalization, scales: FloatArray) -> None:
        self.rule, self.scales = rule, scales

    def __len__(self) -> int:
        return len(self.scales)

    @overload
    def __getitem__(self, m: int) -> Normalization: ...
    @overload
    def __getitem__(self, m: slice) -> Sequence[Normalization]: ...
    def __getitem__(self, m: Any) -> Any:
        if isinstance(m, slice):
            return ScaledRules(self.rule, self.scales[m])
        rule = copy(self.rule)
        rule.scale_ = float(self.scales[m])
        return rule


class _OnDevice(Blocks):
    """Raw kernels; an engine computes their products."""

    def __init__(self, blocks: Blocks, engine: TorchGram) -> None:
        super().__init__(blocks.parts, blocks.members)
        self.engine = engine

    def products(self, vectors: FloatArray) -> FloatArray:
        if (vectors == vectors[0]).all():
            return self.engine.raw_products(vectors[0])
        each = (self.engine.subset(kernels=np.array([m])) for m in range(self.n_kernels))
        return np.concatenate([one.raw_products(v) for one, v in zip(each, vectors, strict=True)])

    def take(self, samples: Any = None, kernels: Any = None) -> Blocks:
        return _OnDevice(super().take(samples, kernels), self.engine.subset(samples, kernels))


def fit_on_device(
    blocks: Blocks, normalize: Any, sample_weight: FloatArray | None, engine: TorchGram
) -> tuple[Sequence[Normalization], FloatArray]:
    """Fit the normalisations of raw kernels and give their constants to the engine of these kernels.

    Returns
    -------
    rules : sequence of Normalization
    scales : ndarray of shape (M,)
    """
    rule = resolve_normalization(normalize)
    if type(rule) is Variance:
        scales = _inverse_variances(engine, sample_weight)
        engine.constants.scales = scales
        return ScaledRules(rule, scales), scales
    fitted, rules = normalised(_OnDevice(blocks, engine), normalize, sample_weight)
    scales = np.array([own.scale_ for own in rules])
    constants = Constants(scales, fitted.roots, fitted.means, fitted.grands, np.zeros(len(scales)))
    engine.constants = constants
    constants.centres = engine.mean_entries()
    return rules, scales


def _inverse_variances(engine: TorchGram, sample_weight: FloatArray | None) -> FloatArray:
    """1 / (mean diagonal - mean of all entries) of every kernel, or 0 if the difference is rounding."""
    n = engine.n_samples
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    share = weight / weight.sum()
    diagonals = engine.mean_diagonals(share)
    spread = diagonals - engine.quad(share)
    eps = float(torch.finfo(engine.kind.dtype).eps)
    return np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 1e3 * eps * np.abs(diagonals))
