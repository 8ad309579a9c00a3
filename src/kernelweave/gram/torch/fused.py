"""Sums over many kernels of one base, in one pass over it.

Every function here has two versions: one compiled by Triton, which reads the base once whatever the
number of kernels, and one of plain torch operations, a few rows at a time so that they stay in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from ..._backend import torch

#: bytes of the base at work at a time in the plain version: what a second-level cache holds
PLAIN_BYTES = 1 << 24


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
    return compiled() if base.is_cuda and base.dtype == torch.float32 else None


def add_gaussians(base: Any, gammas: Any, factors: Any, centres: Any, out: Any) -> None:
    """out += sum_k factors[k] (exp(-gammas[k] base) - centres[k]); all of them tensors of one device.

    Values of wide kernels are all nearly the same: taking that away first leaves little to round.
    """
    loops = loops_for(base)
    if loops is not None:
        loops.add_gaussians(base, gammas, factors, centres, out)
        return
    for rows in few_rows(base):
        values = torch.empty_like(base[rows])
        for gamma, factor, centre in zip(gammas.tolist(), factors.tolist(), centres.tolist(), strict=True):
            torch.mul(base[rows], -gamma, out=values)
            out[rows] += values.exp_().sub_(centre).mul_(factor)


def inner_gaussians(base: Any, gammas: Any, centres: Any, left: Any, right: Any) -> Any:
    """sum_ij (left right')_ij (exp(-gammas[k] base_ij) - centres[k]) for every k, in double precision.

    Parameters
    ----------
    left, right : tensor of shape (n_rows, c), (n_columns, c)
    """
    loops = loops_for(base)
    if loops is not None and left.shape[1] == 1:
        return loops.inner_gaussians(base, gammas, centres, left[:, 0].contiguous(), right[:, 0].contiguous())
    total = torch.zeros(len(gammas), dtype=torch.float64, device=base.device)
    for rows in few_rows(base):
        for k, (gamma, centre) in enumerate(zip(gammas.tolist(), centres.tolist(), strict=True)):
            product = torch.mul(base[rows], -gamma).exp_().sub_(centre) @ right
            total[k] += (left[rows] * product).sum(dtype=torch.float64)
    return total


def weigh_gaussians(base: Any, gammas: Any, W: Any) -> Any:
    """sum_ij W_ij exp(-gammas[k] base_ij) for every k, in double precision."""
    total = torch.zeros(len(gammas), dtype=torch.float64, device=base.device)
    for rows in few_rows(base):
        for k, gamma in enumerate(gammas.tolist()):
            total[k] += torch.mul(base[rows], -gamma).exp_().mul_(W[rows]).sum(dtype=torch.float64)
    return total


def multiply_gaussians(base: Any, gammas: Any, centres: Any, vector: Any) -> Any:
    """(exp(-gammas[k] base) - centres[k]) vector for every k, shape (K, n_rows)."""
    loops = loops_for(base)
    if loops is not None:
        return loops.multiply_gaussians(base, gammas, centres, vector)
    out = torch.empty((len(gammas), len(base)), dtype=base.dtype, device=base.device)
    for rows in few_rows(base):
        for k, (gamma, centre) in enumerate(zip(gammas.tolist(), centres.tolist(), strict=True)):
            out[k, rows] = torch.mul(base[rows], -gamma).exp_().sub_(centre) @ vector
    return out


def few_rows(base: Any) -> Iterator[slice]:
    """Rows of a base that stay in the cache together."""
    step = max(1, PLAIN_BYTES // max(1, base.shape[1] * base.element_size()))
    for start in range(0, len(base), step):
        yield slice(start, min(start + step, len(base)))
