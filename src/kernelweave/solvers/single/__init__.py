"""Machines for one Gram matrix.

Reading order: ``base.py``, ``smooth.py``, ``smo.py`` (with ``_box_qp.py`` and, for badly conditioned
problems, ``_interior.py``), ``within.py`` where only some rows of the matrix are known, ``primal_newton.py``
for kernels that come as factors, ``joint_newton.py`` for losses that couple samples, ``block_descent.py``
(with ``_face.py``) for losses that couple classes. ``torch_smooth.py`` and ``torch_box.py`` (with
``_torch_descent.py`` and, compiled, ``_triton_box.py``) are machines on a device.
"""

from typing import Any

import numpy as np

from ..._registry import Registry
from ...gram.lowrank.engine import FactoredMatrix
from ...gram.some_rows import RowsOfSum, RowsOnDemand
from ...losses import Loss
from .base import Machine, SingleSolver, machine_gap
from .block_descent import BlockDescent
from .joint_newton import JointNewton
from .primal_newton import PrimalNewton
from .smo import SMO
from .smooth import LeastSquares, Newton
from .within import Within

# "auto" takes the first that can handle the loss
SINGLE_SOLVERS = Registry("single-kernel solver", (LeastSquares, SMO, Newton, JointNewton, BlockDescent))


def choose_single(spec: str | SingleSolver, loss: Loss) -> SingleSolver:
    """The solver of that name, or with "auto" the first registered one that can handle `loss`.

    Examples
    --------
    >>> from kernelweave.losses import Logistic
    >>> choose_single("auto", Logistic())
    Newton()
    """
    if spec != "auto":
        result: SingleSolver = SINGLE_SOLVERS.resolve(spec, SingleSolver, "single")
        return result
    for cls in SINGLE_SOLVERS.values():
        if not cls().missing(loss):
            result = cls()
            return result
    raise ValueError(
        f"no single-kernel solver can handle {type(loss).__name__}: give it `hessian` (Newton), "
        "`linear_dual` (SMO), `curvature` where it couples samples (JointNewton), or `simplex_dual` where it "
        "couples classes (BlockDescent)."
    )


def machine_for(K: Any, machine: SingleSolver) -> SingleSolver:
    """`machine`, or its counterpart if K is no array: factors, some rows, or a matrix on another device."""
    if isinstance(K, np.ndarray | RowsOnDemand):
        return machine
    if isinstance(K, RowsOfSum) and isinstance(machine, SMO):
        return Within(machine)
    if isinstance(K, FactoredMatrix) and not isinstance(machine, JointNewton):
        return PrimalNewton()
    from .torch_box import TorchBox
    from .torch_smooth import TorchLeastSquares, TorchNewton

    twins = {"least_squares": TorchLeastSquares, "smo": TorchBox, "newton": TorchNewton}
    return twins[machine.name]() if machine.name in twins else machine


__all__ = [
    "SINGLE_SOLVERS",
    "SMO",
    "BlockDescent",
    "JointNewton",
    "LeastSquares",
    "Machine",
    "Newton",
    "PrimalNewton",
    "SingleSolver",
    "choose_single",
    "machine_for",
    "machine_gap",
]
