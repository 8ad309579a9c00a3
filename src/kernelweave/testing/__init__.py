"""Checks of losses, regularisers, kernels, engines, solvers and estimators, the ones of our own tests."""

from ._contract import Contract
from .kernels import check_kernel
from .losses import check_loss
from .regularizers import check_regularizer

__all__ = ["Contract", "check_kernel", "check_loss", "check_regularizer"]
