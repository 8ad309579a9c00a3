"""Checks of losses, regularisers, kernels, engines, solvers and estimators, the ones of our own tests."""

from ._contract import Contract
from .estimators import check_mkl_estimator
from .gram import check_gram
from .kernels import check_kernel
from .losses import check_loss
from .regularizers import check_regularizer
from .solvers import check_solver

__all__ = [
    "Contract",
    "check_gram",
    "check_kernel",
    "check_loss",
    "check_mkl_estimator",
    "check_regularizer",
    "check_solver",
]
