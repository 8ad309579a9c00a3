"""Kernels of the host as kernels of a device."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from ..._backend import torch
from ..._typing import FloatArray
from ..shared import Shared, SharedDistances, SharedProducts
from ..squares import SharedSquares
from .bases import Base, Distances, FromHost, Products
from .parts import DevicePart, Gaussians, Polynomials, Same
from .subsets import Differences, SubsetGaussians, unpack

#: entries of a table above which a sparse one is not written out
MOST_DENSE = 1 << 31


def part_of(shared: Shared, like: Any) -> DevicePart:
    """Kernels with one base, on the device and in the precision of the tensor `like`."""
    if isinstance(shared, SharedSquares):
        points = torch.as_tensor(np.ascontiguousarray(shared.points.T)).to(like.device)
        mean = points.mean(dim=0, dtype=torch.float64)
        masks = unpack(shared.subsets, len(shared.points), like.device)
        differences = Differences((points - mean).to(like.dtype), mean)
        return SubsetGaussians(differences, masks, np.asarray(shared.gammas))
    base = base_of(shared, like)
    if isinstance(shared, SharedDistances):
        return Gaussians(base, shared.gammas)
    if isinstance(shared, SharedProducts):
        return Polynomials(base, shared.terms)
    return Same(base, shared.n_kernels)


def base_of(shared: Shared, like: Any) -> Base:
    """What the kernels share."""
    points: Any = getattr(shared, "X", None)
    if sparse.issparse(points) and points.shape[0] * points.shape[1] <= MOST_DENSE:
        points = points.toarray()
    if type(shared) is SharedDistances and isinstance(points, np.ndarray):
        moved = shared.origin if sparse.issparse(shared.X) else np.zeros_like(shared.origin)
        return _distances(points, moved, like)
    if type(shared) is SharedProducts and isinstance(points, np.ndarray):
        return Products(torch.as_tensor(points).to(like))
    return FromHost(shared, like)


def _distances(X: FloatArray, moved: FloatArray, like: Any) -> Distances:
    """Distances of samples, which are X + moved, about their mean."""
    points = torch.as_tensor(X).to(like.device)
    mean = points.mean(dim=0, dtype=torch.float64)
    return Distances((points - mean).to(like.dtype), mean + torch.as_tensor(moved).to(mean))
