"""Kernels that share one base, on a device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ..._backend import torch
from ..._typing import FloatArray, IntArray
from . import fused
from .bases import Base


class DevicePart(ABC):
    """Kernels of one base.

    Parameters
    ----------
    base : Base
    """

    n_kernels: int

    #: whether k(x, x) = 1
    unit_diagonal = False

    def __init__(self, base: Base) -> None:
        self.base, self.n_samples = base, base.n_samples

    @abstractmethod
    def values(self, base: Any, k: int) -> Any:
        """Kernel k from the base; it may be the base itself."""

    @abstractmethod
    def take(self, base: Base, kernels: IntArray | None) -> DevicePart:
        """Some of the kernels, on another base."""

    @abstractmethod
    def diag(self, k: int) -> Any:
        """Values k(x_i, x_i) of kernel k."""

    def add(self, base: Any, factors: FloatArray, centres: FloatArray, out: Any) -> None:
        """out += sum_k factors[k] (K_k - centres[k])."""
        for k in np.flatnonzero(factors).tolist():
            out.add_(self.values(base, k) - float(centres[k]), alpha=float(factors[k]))

    def inner(self, base: Any, centres: FloatArray, left: Any, right: Any) -> Any:
        """sum_ij (left right')_ij (K_k,ij - centres[k]) for every k, in double precision."""
        products = (((self.values(base, k) - float(c)) @ right) * left for k, c in enumerate(centres))
        return torch.stack([product.sum(dtype=torch.float64) for product in products])

    def weigh(self, base: Any, W: Any) -> Any:
        """sum_ij W_ij K_k,ij for every k, in double precision."""
        sums = [(self.values(base, k) * W).sum(dtype=torch.float64) for k in range(self.n_kernels)]
        return torch.stack(sums)

    def multiply(self, base: Any, centres: FloatArray, vector: Any) -> Any:
        """(K_k - centres[k]) vector for every k, shape (K, n_rows)."""
        return torch.stack([(self.values(base, k) - float(c)) @ vector for k, c in enumerate(centres)])


class Gaussians(DevicePart):
    """exp(-gamma_k d), for all k while a distance is at hand."""

    unit_diagonal = True

    def __init__(self, base: Base, gammas: FloatArray) -> None:
        super().__init__(base)
        self.gammas, self.n_kernels = np.asarray(gammas, dtype=np.float64), len(gammas)

    def values(self, base: Any, k: int) -> Any:
        return torch.mul(base, -float(self.gammas[k])).exp_()

    def take(self, base: Base, kernels: IntArray | None) -> Gaussians:
        return Gaussians(base, self.gammas if kernels is None else self.gammas[kernels])

    def diag(self, k: int) -> Any:
        return self.base.ones()

    def add(self, base: Any, factors: FloatArray, centres: FloatArray, out: Any) -> None:
        live = np.flatnonzero(factors)
        gammas, own, middles = (like(values[live], base) for values in (self.gammas, factors, centres))
        fused.add_gaussians(base, gammas, own, middles, out)

    def inner(self, base: Any, centres: FloatArray, left: Any, right: Any) -> Any:
        return fused.inner_gaussians(base, like(self.gammas, base), like(centres, base), left, right)

    def weigh(self, base: Any, W: Any) -> Any:
        return fused.weigh_gaussians(base, like(self.gammas, base), W)

    def multiply(self, base: Any, centres: FloatArray, vector: Any) -> Any:
        return fused.multiply_gaussians(base, like(self.gammas, base), like(centres, base), vector)


class Polynomials(DevicePart):
    """(gamma_k x'z + coef0_k)^degree_k."""

    def __init__(self, base: Base, terms: list[tuple[float, float, int]]) -> None:
        super().__init__(base)
        self.terms, self.n_kernels = terms, len(terms)

    def values(self, base: Any, k: int) -> Any:
        gamma, coef0, degree = self.terms[k]
        return base if (gamma, coef0, degree) == (1.0, 0.0, 1) else (gamma * base + coef0) ** degree

    def diag(self, k: int) -> Any:
        return self.values(self.base.diag(), k)

    def take(self, base: Base, kernels: IntArray | None) -> Polynomials:
        return Polynomials(base, self.terms if kernels is None else [self.terms[k] for k in kernels])


class Same(DevicePart):
    """Kernels whose values are the base: any kernel alone, or a matrix given."""

    def __init__(self, base: Base, n_kernels: int = 1) -> None:
        super().__init__(base)
        self.n_kernels = n_kernels

    def values(self, base: Any, k: int) -> Any:
        return base

    def diag(self, k: int) -> Any:
        return self.base.diag()

    def take(self, base: Base, kernels: IntArray | None) -> Same:
        return Same(base, self.n_kernels if kernels is None else len(kernels))


def like(values: Any, tensor: Any) -> Any:
    """Numbers of the host as a tensor of the same precision and device as another."""
    return torch.as_tensor(np.ascontiguousarray(values)).to(tensor)
