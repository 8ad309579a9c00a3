"""Smooth losses where K is on a device: logistic, squared hinge, Huber."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._backend import torch
from ..._typing import FloatArray
from ..problem import Problem
from .newton import Newton
from .torch_linear import solve_shifted

#: curvature below this share of the largest counts as that share: a flat sample then hardly moves
FLAT = 1e-10


class TorchNewton(Newton):
    """The Newton steps of `Newton`, whose linear systems are solved on the device.

    All samples stay in the system: one of no curvature W has 1/W on the diagonal.
    """

    name = "torch_newton"

    def direction(
        self, K: Any, problem: Problem, alpha: FloatArray, f: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """(dalpha, db) with (diag(1/W) + K) dalpha + db = -(alpha + C V') / W, sum(alpha + dalpha) right."""
        residual = (alpha - problem.alpha_of(f))[:, 0]
        W = (problem.C * problem.loss.hessian(problem.y, f))[:, 0]
        W = np.maximum(W, FLAT * max(float(W.max()), 1e-300))
        right = np.column_stack([-residual / W, np.ones(len(W))])
        extra, sides = (torch.as_tensor(values, device=K.like.device) for values in (1.0 / W, right))
        x, ones = solve_shifted(K, extra, sides).cpu().numpy().T
        db = 0.0
        if problem.fit_intercept:
            db = (x.sum() - (problem.loss.alpha_sum - alpha.sum())) / ones.sum()
        return (x - db * ones)[:, None], np.array([db])
