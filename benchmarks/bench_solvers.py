"""Solvers to compare with: seconds and single-kernel fits to a certified gap of 1e-3 on a small problem.

Simulated Gaussian kernels, hinge loss, C = 1, matrices in memory, one thread; the least processor seconds of
a few turns. "default" is ``solver="auto"``; "alternating" the wrapper of Kloft et al. (2011), Algorithm 1, as
printed (``Alternating(memory=0)``); "interleaved" their Algorithm 2, whose rounds are counted; "silp" the
cutting planes of Sonnenburg et al. (2006) and for p > 1 of Kloft et al. (2009); "qcqp" the conic program of
Lanckriet et al. (2004), p = 1 only, where cvxpy is installed, whose one solve is counted. The last column is
the objective relative to that of the default: all have to agree to the tolerance.

    python benchmarks/bench_solvers.py [n] [kernels] [--rounds R]
"""

from __future__ import annotations

import argparse
import importlib.util
import time
import warnings

import numpy as np
from workloads import simulated

import kernelweave as kw
from kernelweave.gram import DenseGram
from kernelweave.losses import Hinge
from kernelweave.solvers import Problem
from kernelweave.solvers.base import MKLSolver
from kernelweave.solvers.multiple import Alternating, choose_solver
from kernelweave.solvers.run import Result

TOL, MOST = 1e-3, 2000


def solvers(p: float) -> dict[str, MKLSolver]:
    """Those for this norm that can be run here."""
    rule = kw.LpNorm(p)
    found = {"default": choose_solver("auto", rule), "alternating": Alternating(memory=0)}
    names = ["interleaved", "silp"]
    if p == 1 and importlib.util.find_spec("cvxpy"):
        names.append("qcqp")
    return {**found, **{name: choose_solver(name, rule) for name in names}}


def solve(solver: MKLSolver, Ks: np.ndarray, y: np.ndarray, p: float) -> tuple[float, Result]:
    """Seconds of the processor, and what came out."""
    problem, rule = Problem(y[:, None], Hinge(), np.ones((len(y), 1))), kw.LpNorm(p)
    gram, start = DenseGram(Ks), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a gap that is not closed is in the table
        found = solver.solve(problem, gram, rule, TOL, MOST)
    return time.process_time() - start, found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("n", nargs="?", type=int, default=200)
    parser.add_argument("kernels", nargs="?", type=int, default=15)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    Ks, y = simulated(options.n, options.kernels)
    print(f"n = {options.n}, {options.kernels} kernels")
    print("    p  solver        seconds   fits      gap   objective")
    agree = True
    for p in (1.0, 4 / 3, 2.0):
        least: dict[str, float] = {}
        last: dict[str, Result] = {}
        for solver in solvers(p).values():
            solve(solver, Ks[:, :40, :40].copy(), y[:40], p)  # compiled
        for _ in range(options.rounds):
            for name, solver in solvers(p).items():
                seconds, last[name] = solve(solver, Ks, y, p)
                least[name] = min(seconds, least.get(name, np.inf))
        optimum = last["default"].state.certificate.primal
        for name, found in last.items():
            proof = found.state.certificate
            ratio = proof.primal / optimum
            agree &= bool(found.converged) and abs(ratio - 1.0) <= 2 * TOL
            told = f"{least[name]:8.3f}  {found.n_iter:5d}  {proof.gap:7.0e}  {ratio:10.5f}"
            print(f"{p:5.3g}  {name:12s} {told}", flush=True)
    print("all certified, and they agree" if agree else "not all are certified, or they disagree")
    return int(not agree)


if __name__ == "__main__":
    raise SystemExit(main())
