"""Methods over machine and kernel weights.

Reading order: ``alternating.py``, then ``newton_weights.py`` and its successor ``cutting_planes.py``;
``majorize_minimize.py`` is short, and ``newton_norms.py`` is for penalties without a price of weights.
``interleaved.py`` trains one machine while the weights move; ``qcqp.py`` leaves everything to a conic solver.
``empirical_bayes.py`` (with ``_evidence.py``) maximises the evidence instead.
"""

from ..._registry import Registry
from ...regularizers import Regularizer
from ..base import MKLSolver
from .alternating import Alternating, JointAscent
from .cutting_planes import CuttingPlanes
from .interleaved import Interleaved
from .majorize_minimize import MajorizeMinimize
from .newton_norms import NewtonNorms
from .newton_weights import NewtonWeights
from .qcqp import QCQP

# "auto" takes the first that is meant for the regulariser; the last three are for comparison
MKL_SOLVERS = Registry(
    "solver",
    (
        *(NewtonWeights, JointAscent, MajorizeMinimize, NewtonNorms, Alternating),
        *(Interleaved, CuttingPlanes, QCQP),
    ),
)


def choose_solver(spec: str | MKLSolver, regularizer: Regularizer) -> MKLSolver:
    """The solver of that name, or with "auto" the first registered one meant for `regularizer`.

    Examples
    --------
    >>> from kernelweave.regularizers import LpNorm
    >>> choose_solver("auto", LpNorm(p=1))
    NewtonWeights()
    """
    if spec != "auto":
        solver: MKLSolver = MKL_SOLVERS.resolve(spec, MKLSolver, "solver")
        solver.check(regularizer)
        return solver
    for solver in (cls() for cls in MKL_SOLVERS.values()):
        if solver.can_handle(regularizer):
            return solver
    raise ValueError(f"no solver is meant for {regularizer!r}: name one of {sorted(MKL_SOLVERS)}.")


__all__ = [
    "MKL_SOLVERS",
    "QCQP",
    "Alternating",
    "CuttingPlanes",
    "Interleaved",
    "JointAscent",
    "MajorizeMinimize",
    "NewtonNorms",
    "NewtonWeights",
    "choose_solver",
]
