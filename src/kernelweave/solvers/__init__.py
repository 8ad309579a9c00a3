"""Solvers: one certificate, one loop, machines for one kernel, and methods over several.

A machine is the solver of a single-kernel fit at fixed weights, or the fit itself.

Reading order: ``problem.py`` (targets, loss, costs), ``certificate.py`` (primal, dual and gap), ``run.py``
(the loop: `Run`, `Method`, `Result`), ``single`` (machines for one Gram matrix), ``base.py`` (what the convex
methods share), ``multiple`` (the convex methods, and empirical Bayes). Then what a convex run may do on the
way: ``growing.py`` (use only some of the samples or kernels), ``checkpoint.py`` (keep its state on disk).
``kernel_gradient`` and ``greedy`` are methods of their own; ``leave_one_out.py`` follows a fit.
"""

from .certificate import Certificate, certificate
from .leave_one_out import leave_one_out
from .problem import Problem, best_intercept

__all__ = ["Certificate", "Problem", "best_intercept", "certificate", "leave_one_out"]
