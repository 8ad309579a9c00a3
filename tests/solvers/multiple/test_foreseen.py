"""Norms on all samples, foreseen from few of them."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.gram import DenseGram
from kernelweave.losses import Hinge
from kernelweave.regularizers import LpNorm
from kernelweave.solvers import Problem
from kernelweave.solvers.growing import Begin, pilot_of
from kernelweave.solvers.multiple.alternating import MIDDLE, Alternating, _continued
from kernelweave.solvers.run import Run


def problem(n=800, M=6):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    y = np.sign(X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.3 * rng.normal(size=n))
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    Ks = np.exp(-squares[None] / np.geomspace(0.5, 60.0, M)[:, None, None])
    Ks /= (1.0 - Ks.mean(axis=(1, 2)))[:, None, None]
    return Problem(y[:, None], Hinge(), np.ones((n, 1))), DenseGram(Ks)


def test_a_newton_step_leads_to_the_norms_on_some_samples():
    whole, gram = problem()
    rule, solver = LpNorm(p=2), Alternating()
    run = Run(solver, whole, gram, rule, 1e-3, 50, begin=Begin())
    pilot, count = pilot_of(run, solver.pilot_share), int(MIDDLE * gram.n_samples)
    start = np.log(pilot.norms)
    found = solver._middle(run, pilot.newton, start, count)
    rows = whole.spread(count)
    exact = Alternating().solve(whole.subset(rows), gram.subset(rows), rule, tol=1e-7)
    expected = np.log(exact.state.certificate.norms)
    shifted = [one - one.max() for one in (start, found, expected)]  # weights of a constraint see ratios
    share = exact.state.certificate.norms / exact.state.certificate.norms.sum()
    before, after = (share @ np.abs(one - shifted[2]) for one in shifted[:2])
    assert after < 0.02
    assert after < 0.5 * before


def test_the_first_machine_on_all_samples_is_nearer_for_it():
    whole, gram = problem()
    gaps = []
    for gram.parts_in_place in (False, True):
        found = []
        solution = Alternating().solve(
            whole, gram, LpNorm(p=2), callback=lambda k, state, found=found: found.append(state.residual)
        )
        assert solution.state.certificate.gap <= 1e-3
        gaps.append(found[0])
    assert gaps[1] < 0.5 * gaps[0]


def test_a_bias_of_one_over_the_root_of_the_samples_is_continued():
    limit, bias = np.random.default_rng(0).uniform(-1.0, 1.0, size=(2, 5))
    at = {n: limit + bias / np.sqrt(n) for n in (100, 400, 1000)}
    assert at[400] + _continued(at[400] - at[100], 100, 400, 1000) == pytest.approx(at[1000])
