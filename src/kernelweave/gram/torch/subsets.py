"""Gaussian kernels on many different subsets of columns, on a device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ..._backend import torch
from ..._typing import FloatArray, IntArray
from .bases import Base
from .fused import loops_for
from .parts import DevicePart, like

#: bytes of the values of some kernels on some pairs at a time: what a second-level cache holds
VALUE_BYTES = 1 << 25

#: columns up to which the compiled loops hold the differences of a tile in registers
MOST_COLUMNS = 128


class Differences(Base):
    """Squared differences of two samples, column by column.

    Parameters
    ----------
    X : tensor of shape (n, F)
        Less `mean`, which is where rounding is least.
    mean : tensor of shape (F,)
        In double precision.
    """

    def __init__(self, X: Any, mean: Any) -> None:
        self.X, self.mean, self.n_samples = X, mean, len(X)

    def part(self, rows: Any, columns: Any) -> Any:
        return (self.X[rows][:, None, :] - self.X[columns][None, :, :]).square_()

    def to(self, Z: Any) -> Any:
        return ((Z - self.mean).to(self.X.dtype)[:, None, :] - self.X[None, :, :]).square_()

    def diag(self) -> Any:
        return torch.zeros_like(self.X)

    def ones(self) -> Any:
        return torch.ones_like(self.X[:, 0])

    def row_bytes(self, n_columns: int) -> int:
        return n_columns * int(self.X.shape[1] * self.X.element_size())

    def take(self, samples: Any) -> Differences:
        return Differences(self.X[samples], self.mean)


class SubsetGaussians(DevicePart):
    """exp(-gamma_k sum_{f in S_k} (x_f - z_f)^2): one product of differences and subsets for all k.

    Parameters
    ----------
    base : Differences
    subsets : tensor of uint8, shape (K, F)
        1 where a kernel sees a column.
    gammas : ndarray of shape (K,)
    """

    unit_diagonal = True

    def __init__(self, base: Base, subsets: Any, gammas: FloatArray) -> None:
        super().__init__(base)
        self.subsets, self.gammas, self.n_kernels = subsets, gammas, len(gammas)
        self._sent: Any = None

    def values(self, base: Any, k: int) -> Any:
        return torch.exp(base @ (self.subsets[k].to(base.dtype) * -float(self.gammas[k])))

    def diag(self, k: int) -> Any:
        return self.base.ones()

    def take(self, base: Base, kernels: IntArray | None) -> SubsetGaussians:
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
        loops = loops_for(base) if base.shape[-1] <= MOST_COLUMNS else None
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
        loops = loops_for(base) if base.shape[-1] <= MOST_COLUMNS else None
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
        """K_k - centres[k] of some kernels after another on all pairs, shape (n_pairs, n_kernels)."""
        pairs, rates, middles = base.reshape(-1, base.shape[-1]), self._rates(base), like(centres, base)
        step = max(1, VALUE_BYTES // max(1, len(pairs) * pairs.element_size()))
        for start in range(0, self.n_kernels, step):
            some = slice(start, min(start + step, self.n_kernels))
            exponents = self.subsets[some].to(pairs.dtype) * -rates[some][:, None]
            yield some, (pairs @ exponents.T).exp_().sub_(middles[some])

    def _rates(self, base: Any) -> Any:
        """The gammas on the device; sent there once."""
        if self._sent is None or self._sent.dtype != base.dtype:
            self._sent = like(self.gammas, base)
        return self._sent


def unpack(bits: IntArray, n_columns: int, device: Any) -> Any:
    """Subsets packed eight columns a byte, as ones and zeros."""
    masks = np.unpackbits(bits.astype(np.uint8, copy=False), axis=1, count=n_columns, bitorder="little")
    return torch.as_tensor(masks).to(device)
