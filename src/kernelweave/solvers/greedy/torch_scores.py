"""Scores of greedy selection on a device."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._backend import free_bytes, torch
from ..._typing import BoolArray, FloatArray
from .dictionary import Block, Full, LowRank

#: share of the free memory of the device that factors may take
SHARE = 0.7


class TorchScores:
    """tr(R' K_m (K_m + shift I)^-1 R) for many kernels, from factors held on a device.

    A thin factor Phi is held as L^-1 Phi' with L L' = Phi'Phi + shift I, and factors of equal rank are
    multiplied with R together. A full matrix is held as the Cholesky factor of K + shift I, which scores
    ||R||^2 - shift ||U'^-1 R||^2. Kernels for which there is no room are left to the host.

    Parameters
    ----------
    blocks : dict of int to LowRank or Full
    device : torch.device
    """

    def __init__(self, blocks: dict[int, Block], device: Any) -> None:
        self.blocks, self.device = blocks, device
        self.shift: float | None = None
        self.thin: list[tuple[FloatArray, Any]] = []
        self.full: dict[int, Any] = {}

    def captured(self, R: FloatArray, wanted: BoolArray, shift: float) -> dict[int, float]:
        """The scores of the kernels `wanted` that are on the device."""
        if self.shift != shift:
            self._send(shift)
        right, out = self._tensor(R), {}
        for members, stack in self.thin:
            scores = (stack @ right).square_().sum(dim=(1, 2)).cpu().numpy()
            out.update({int(m): float(s) for m, s in zip(members, scores, strict=True) if wanted[m]})
        size = float((R**2).sum())
        for m in (m for m in self.full if wanted[m]):
            solved = torch.linalg.solve_triangular(self.full[m], right, upper=False)
            out[m] = max(size - shift * float(solved.square_().sum()), 0.0)
        return out

    def _send(self, shift: float) -> None:
        """Factor as many kernels as there is room for on the device, for one ridge."""
        self.thin, self.full, self.shift = [], {}, shift
        free = free_bytes(self.device)
        room = np.inf if free is None else SHARE * free
        kept = {m: block for m, block in self.blocks.items() if (room := room - block.nbytes) > 0}
        ranks = {m: block.Phi.shape[1] for m, block in kept.items() if isinstance(block, LowRank)}
        for rank in sorted(set(ranks.values()) - {0}):
            members = np.array([m for m in ranks if ranks[m] == rank])
            stack = self._tensor(np.stack([kept[m].Phi.T for m in members]))  # type: ignore[union-attr]
            products = stack @ stack.mT
            products.diagonal(dim1=1, dim2=2).add_(shift)
            roots = torch.linalg.cholesky(products)
            self.thin.append((members, torch.linalg.solve_triangular(roots, stack, upper=False)))
        for m, block in kept.items():
            if isinstance(block, Full):
                self.full[m] = self._factor(block, shift)

    def _factor(self, block: Full, shift: float) -> Any:
        total = np.zeros(block.packed.shape)
        block.add_to(total)
        A = self._tensor(np.tril(total) + np.tril(total, -1).T)
        A.diagonal().add_(shift)
        factor, failed = torch.linalg.cholesky_ex(A)
        if int(failed):
            block.factor(shift)  # raises the error that says what is wrong
        return factor

    def _tensor(self, values: FloatArray) -> Any:
        return torch.as_tensor(np.ascontiguousarray(values), device=self.device)
