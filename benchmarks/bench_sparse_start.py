"""Sparse weights: can a look at some of the samples make one machine on all of them enough?

The problem of `bench_end_to_end` with p = 1, on several draws of the samples. It is solved on one sample in
16, 8, 4 and 2.5, to a gap of 1e-3; the machine on all samples is then trained at the weights found, to a
fifth of that gap, and its certified gap on all samples is shown. One machine is enough where that is at most
1e-3, which is what the "floor" of `bench_end_to_end` for p = 1 takes for granted.

Below, for the first draw, seconds of the processor of a fit that needs a second machine and does nothing else
besides: that floor at the weights of the look at one sample in 8, reading what this look needs, the linear
system that moves alpha to the final weights, and a second machine there (the rows of the sum that it reads,
steps from the alpha that was moved). Solving on the samples of the look costs nothing here, nor do copies of
models, checks of arguments, and certificates. "most" is the ratio to the user's loop, whose time varies by a
sixth from run to run.

The answer is: rarely (2 of 16 looks at n = 1000, none of 16 at n = 4000). So a fit with p = 1 needs a second
machine as a rule, and the ratios that `bench_end_to_end` calls "most" for p = 1 are out of reach.

    python benchmarks/bench_sparse_start.py [--draws D] [n ...]
"""

from __future__ import annotations

import argparse
from types import SimpleNamespace

import numpy as np
from bench_end_to_end import floor, in_turns
from threadpoolctl import threadpool_limits
from user_loops import cutting_planes
from workloads import data_folder, mnist_odd_even

from kernelweave.gram import DenseGram
from kernelweave.losses import Hinge
from kernelweave.regularizers import LpNorm
from kernelweave.solvers import Problem, certificate
from kernelweave.solvers.multiple import NewtonWeights
from kernelweave.solvers.multiple.newton_weights import moved_alpha, response_to_weights
from kernelweave.solvers.single import SMO

SHARES, TOL = (16, 8, 4, 2.5), 1e-3
RULE = LpNorm(p=1)


def solve(problem: Problem, gram: DenseGram) -> np.ndarray:
    """The weights of a problem."""
    return NewtonWeights().solve(problem, gram, RULE, tol=TOL).state.weights


def first_gap(problem: Problem, gram: DenseGram, weights: np.ndarray) -> float:
    """The gap on all samples and kernels after one machine at these weights."""
    machine = SMO().solve(gram.combine(weights), problem, 0.2 * TOL)
    squares = gram.quad(machine.alpha)
    return certificate(problem, gram, RULE, machine.alpha, weights, machine.fitted, squares).gap


def two_machines(Ks: np.ndarray, y: np.ndarray, problem: Problem, first: np.ndarray) -> str:
    """Seconds of what no fit that needs a second machine can leave out."""
    gram, sample = DenseGram(Ks), problem.spread(len(y) // 8)
    final = solve(problem, gram)
    live = np.flatnonzero(first + final)
    few, change = DenseGram([Ks[m] for m in live]), final[live] - first[live]
    rows = few.rows_on_demand(first[live])
    alpha = SMO().solve(rows, problem, 0.2 * TOL).alpha
    products = few.quad_and_products(alpha)[1]
    state = SimpleNamespace(weights=first[live], alpha=alpha, products=products, residual=TOL)

    def step() -> np.ndarray:
        return moved_alpha(problem, alpha, response_to_weights(problem, few, state, rows).moves, change)

    moved = step()
    runs = [
        lambda: cutting_planes(Ks, y, 1.0),
        lambda: floor(Ks, y, first),
        lambda: gram.subset(sample),
        step,
        lambda: SMO().solve(few.rows_on_demand(final[live]), problem, 0.2 * TOL, moved),
    ]
    (theirs, known, look, system, second), _ = in_turns(runs, 3)
    most = theirs / (known + look + system + second)
    return (
        f"{len(y):6d} user's loop {theirs:.3f}, floor {known:.3f} (most {theirs / known:.2f}), "
        f"look {look:.3f}, system {system:.3f}, second machine {second:.3f}: most {most:.2f}"
    )


def main() -> None:
    if not (data_folder() / "mnist.npz").exists():
        print("mnist.npz not found: set KERNELWEAVE_DATA to the folder that holds it. Nothing measured.")
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, default=[1000, 4000])
    parser.add_argument("--draws", type=int, default=4)
    arguments = parser.parse_args()
    print("certified gap after one machine on all samples, at the weights of a look at one sample in")
    print("     n  draw" + "".join(f"{share:10g}" for share in SHARES))
    for n in arguments.sizes:
        enough, report = np.zeros(len(SHARES), dtype=int), ""
        for draw in range(arguments.draws):
            Ks, y = mnist_odd_even(n, seed=draw)
            problem, gram = Problem(y[:, None], Hinge(), np.ones((n, 1))), DenseGram(Ks)
            looks = [problem.spread(int(n / share)) for share in SHARES]
            found = [solve(problem.subset(rows), gram.subset(rows)) for rows in looks]
            gaps = [first_gap(problem, gram, weights) for weights in found]
            enough += np.array(gaps) <= TOL
            print(f"{n:6d} {draw:5d}" + "".join(f"{gap:10.1e}" for gap in gaps), flush=True)
            report = report or two_machines(Ks, y, problem, found[SHARES.index(8)])
        print(f"{n:6d} one machine is enough in {', '.join(map(str, enough))} of {arguments.draws} draws")
        print(report, flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
