"""Solvers: one certificate, single-kernel machines, and solvers over kernel weights."""

from .certificate import Certificate, certificate
from .leave_one_out import leave_one_out
from .problem import Problem, best_intercept

__all__ = ["Certificate", "Problem", "best_intercept", "certificate", "leave_one_out"]
