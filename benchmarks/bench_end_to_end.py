"""A whole fit against the loop a user would write today: checks, normalisation and model included.

``MKLClassifier("precomputed").fit(stack, y)`` with fifty Gaussian kernels on MNIST, odd against even (C = 1,
hinge loss, gap 1e-3), against a loop of `SVC` (tol = 1e-4) and the closed form of the weights, or cutting
planes for p = 1, until the same gap; the loop neither checks nor normalises its matrices. Least processor
seconds of five calls on one thread, loop and fit in turns, after a first fit. The loop, which takes new
memory for every sum, varies by a sixth from run to run, the fit by half of that.
"before" is the ratio of the same comparison when fits still checked, normalised and calibrated in passes of
their own. "passes" are the readings of all matrices that a fit takes, the first of which checks and
normalises them. "floor" are the seconds of what no fit can leave out, and "most" the ratio of a fit that did
nothing else: one reading that checks and sums the kernels at the final weights, one machine trained on that
sum to a fifth of the gap, and alpha' K_m alpha of all kernels, which certifies it. Where few kernels have
weight, the machine comes first and makes the rows of their sum that it reads, and alpha' K_m alpha of all
kernels comes with the reading that checks. How near a reading is to what the memory allows is shown by the
seconds of BLAS for one product K_m v of every matrix.

    python benchmarks/bench_end_to_end.py [--seed S] [n ...]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits
from user_loops import closed_form, cutting_planes
from workloads import data_folder, mnist_odd_even

import kernelweave as kw
from kernelweave.gram import DenseGram
from kernelweave.gram._workers import mirror_lower
from kernelweave.gram.dictionary import FEW_WEIGHTS, PSD_FLOPS, Checked
from kernelweave.gram.dictionary import _spread as spread_rows
from kernelweave.kernels.precomputed import Along, look_at_all
from kernelweave.losses import Hinge
from kernelweave.solvers import Problem
from kernelweave.solvers.single import SMO

NORMS = (1, 4 / 3, 2, 4)

#: ratios of n = 1000, 2000, 4000 and the norms before
BEFORE = {1000: (2.4, 3.4, 1.5, 0.97), 2000: (2.5, 4.0, 2.2, 1.4), 4000: (4.7, 5.6, 3.7, 2.6)}


def seconds(run: Callable[[], object]) -> tuple[float, object]:
    start = time.process_time()
    result = run()
    return time.process_time() - start, result


def in_turns(runs: list[Callable[[], object]], rounds: int) -> tuple[list[float], list]:
    """The least seconds of each, and its last result."""
    least, last = [np.inf] * len(runs), [None] * len(runs)
    for _ in range(rounds):
        for k, run in enumerate(runs):
            last[k] = None  # one result of each kind at a time: memory that others hold is new memory
            taken, last[k] = seconds(run)
            least[k] = min(least[k], taken)
    return least, last


def read(Ks: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The one reading, which checks and sums."""
    flops, total = PSD_FLOPS / len(Ks), np.empty(Ks.shape[1:])
    looks = look_at_all(list(Ks), weights, spread_rows(Ks.shape[1], flops), total)
    for K, look in zip(Ks, looks, strict=True):
        Checked(K, "K", flops, look=look).finish()
    mirror_lower(total)
    return total


def floor(Ks: np.ndarray, y: np.ndarray, weights: np.ndarray) -> None:
    """What a fit that knew the weights would still do."""
    problem = Problem(y[:, None], Hinge(), np.ones((len(y), 1)))
    live = np.flatnonzero(weights)
    if len(live) > FEW_WEIGHTS * len(Ks):
        machine = SMO().solve(read(Ks, weights), problem, 2e-4)
        DenseGram(Ks).quad(machine.alpha)
        return
    rows = DenseGram([Ks[m] for m in live]).rows_on_demand(weights[live])
    machine = SMO().solve(rows, problem, 2e-4)
    for K in Ks:
        Checked(K, "K", PSD_FLOPS / len(Ks), Along(alpha=machine.alpha[:, 0])).finish()


def compare(Ks: np.ndarray, y: np.ndarray, p: float, rounds: int) -> str:
    stack = kw.KernelStack(list(Ks))
    loop = (lambda: cutting_planes(Ks, y, 1.0)) if p == 1 else (lambda: closed_form(Ks, y, 1.0, p))

    def fit() -> kw.MKLClassifier:
        return kw.MKLClassifier("precomputed", regularizer=kw.LpNorm(p)).fit(stack, y)

    weights = fit().weights_  # the first call compiles
    (theirs, ours, least), (known, model, _) = in_turns([loop, fit, lambda: floor(Ks, y, weights)], rounds)
    assert model.dual_gap_ <= 1e-3
    assert known.gap <= 1e-3
    before = dict(zip(NORMS, BEFORE.get(len(y), [np.nan] * len(NORMS)), strict=True))[p]
    return (
        f"{len(y):6d} {p:6.3g}  {theirs:8.3f} ({known.n_machines:2d})  {ours:8.3f} ({model.n_iter_:2d})"
        f"  {theirs / ours:6.2f}  {before:6.2f}  {1.0 + model.history_['n_passes'][-1]:6.1f}"
        f"  {least:8.3f}  {theirs / least:6.2f}"
    )


def main() -> None:
    if not (data_folder() / "mnist.npz").exists():
        print("mnist.npz not found: set KERNELWEAVE_DATA to the folder that holds it. Nothing measured.")
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sizes", nargs="*", type=int, default=[1000, 2000, 4000])
    parser.add_argument("--seed", type=int, default=0, help="which samples are drawn")
    arguments = parser.parse_args()
    print("seconds (machines on all samples); ratios are loop / ours")
    print("     n      p    user's loop           fit       ratio  before  passes     floor    most")
    for n in arguments.sizes:
        Ks, y = mnist_odd_even(n, seed=arguments.seed)
        for p in NORMS:
            print(compare(Ks, y, p, rounds=5), flush=True)
        v, even = np.random.default_rng(0).normal(size=n), np.ones(len(Ks))
        runs = [lambda Ks=Ks, v=v: [K @ v for K in Ks], lambda Ks=Ks, even=even: read(Ks, even)]
        (plain, checks), _ = in_turns(runs, 5)
        print(
            f"{n:6d} one reading: {plain:.3f} by BLAS, {checks:.3f} with all checks and the sum", flush=True
        )


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
