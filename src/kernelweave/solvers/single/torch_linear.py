"""Linear systems with one Gram matrix on a device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..._backend import torch
from ...gram.torch.matrix import positive_factor

#: samples up to which systems are factored; larger ones are solved by conjugate gradients
MOST_FACTORED = 16_000

#: most steps of conjugate gradients
MOST_STEPS = 2000


def solve_shifted(K: Any, extra: Any, right: Any, tol: float = 1e-7, start: Any = None) -> Any:
    """(K + diag(extra))^-1 right in double precision, for tensors `extra` (n,) > 0 and `right` (n, c).

    Cholesky of the well-conditioned form I + D K D, D = extra^-1/2, or conjugate gradients where n
    is large.

    Parameters
    ----------
    K : Matrix
    tol : float
        Of the residual, relative to `right`, where it is solved by steps.
    start : tensor of shape (n, c), optional
    """
    D = extra.double().rsqrt()[:, None]
    if len(K) <= MOST_FACTORED:
        every = torch.arange(len(K), device=D.device)
        A = (K.rows(every).double() + K.shift) * D * D.T
        A.diagonal().add_(1.0)
        return D * torch.cholesky_solve(D * right.double(), positive_factor(A))

    def product(v: Any) -> Any:
        return v + D * K.product(D * v)

    first = None if start is None else start.double() / D
    return D * conjugate_gradients(product, D * right.double(), tol, first)


def conjugate_gradients(product: Callable[[Any], Any], right: Any, tol: float, start: Any = None) -> Any:
    """x with product(x) = right, all columns at once; the host looks at the residual now and then."""
    x = torch.zeros_like(right) if start is None else start.clone()
    r = right - product(x)
    p, energy = r.clone(), (r * r).sum(dim=0)
    goal = tol**2 * (right * right).sum(dim=0)
    for iteration in range(MOST_STEPS):
        if iteration % 10 == 0 and bool((energy <= goal).all()):
            break
        Ap = product(p)
        share = energy / (p * Ap).sum(dim=0).clamp(min=1e-300)
        x, r = x + share * p, r - share * Ap
        energy, before = (r * r).sum(dim=0), energy
        p = r + (energy / before.clamp(min=1e-300)) * p
    return x
