"""Machines for one Gram matrix.

Reading order: ``base.py``, ``least_squares.py``, ``newton.py``, ``smo.py`` (with ``_box_qp.py`` and, for
what is badly conditioned, ``_interior.py``), ``primal_newton.py`` for kernels that come as factors.
``torch_smooth.py`` and ``torch_box.py`` are the same machines on a device.
"""

from typing import Any

import numpy as np

from ..._registry import Registry
from ...gram.lowrank.engine import FactoredMatrix
from ...losses import Loss
from .base import Machine, SingleSolver, machine_gap
from .least_squares import LeastSquares
from .newton import Newton
from .primal_newton import PrimalNewton
from .smo import SMO

# "auto" takes the first that can handle the loss
SINGLE_SOLVERS = Registry("single-kernel solver", (LeastSquares, SMO, Newton))


def choose_single(spec: str | SingleSolver, loss: Loss) -> SingleSolver:
    """The solver of that name, or with "auto" the first registered one that can handle `loss`.

    Examples
    --------
    >>> from kernelweave.losses import Logistic
    >>> choose_single("auto", Logistic())
    Newton()
    """
    if spec != "auto":
        return SINGLE_SOLVERS.resolve(spec, SingleSolver, "single")
    for cls in SINGLE_SOLVERS.values():
        if not cls().missing(loss):
            return cls()
    raise ValueError(
        f"no single-kernel solver can handle {type(loss).__name__}: give it `hessian` (Newton) or "
        "`linear_dual` (SMO)."
    )


def machine_for(K: Any, machine: SingleSolver) -> SingleSolver:
    """`machine`, or the one for a K that is no array: factors, or a matrix on another device."""
    if isinstance(K, np.ndarray):
        return machine
    if isinstance(K, FactoredMatrix):
        return PrimalNewton()
    from .torch_box import TorchBox
    from .torch_smooth import TorchLeastSquares, TorchNewton

    twins = {"least_squares": TorchLeastSquares, "smo": TorchBox, "newton": TorchNewton}
    return twins[machine.name]() if machine.name in twins else machine


__all__ = [
    "SINGLE_SOLVERS",
    "SMO",
    "LeastSquares",
    "Machine",
    "Newton",
    "PrimalNewton",
    "SingleSolver",
    "choose_single",
    "machine_for",
    "machine_gap",
]
