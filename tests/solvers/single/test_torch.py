"""Machines of torch agree with those of the host, on torch's CPU device."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.losses import EpsInsensitive, Hinge, Huber, Logistic, OneClass, Squared, SquaredHinge
from kernelweave.solvers import Problem
from kernelweave.solvers.single import choose_single, machine_for, machine_gap

torch = pytest.importorskip("torch", reason="needs torch")
pytestmark = pytest.mark.torch

LOSSES = [Hinge(), SquaredHinge(), Logistic(), Squared(), EpsInsensitive(0.1), Huber(0.5), OneClass()]


def matrix_of(K, shift=0.0, dtype=None):
    from kernelweave.gram.torch.sums import StoredMatrix

    return StoredMatrix(torch.as_tensor(K - shift).to(dtype or torch.float64), shift)


def problem_of(loss, rng, n=120, C=1.0, fit_intercept=True):
    x = rng.normal(size=(n, 2))
    K = np.exp(-0.5 * ((x[:, None] - x) ** 2).sum(axis=2)) + 30.0  # far from centred
    y = np.sin(2.0 * x[:, 0]) + 0.3 * rng.normal(size=n)
    y = y if loss.task == "regression" else np.where(y > 0, 1.0, -1.0)
    costs = C * rng.uniform(0.5, 1.5, size=(n, 1))
    costs = 0.1 + 0.0 * costs if loss.task == "one_class" else costs
    return K, Problem(y[:, None], loss, costs, fit_intercept)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_same_solution_as_the_host(loss, fit_intercept, rng):
    if loss.task == "one_class" and not fit_intercept:
        pytest.skip("one-class machines always have an offset")
    K, problem = problem_of(loss, rng, fit_intercept=fit_intercept)
    host = choose_single("auto", loss)
    device = machine_for(matrix_of(K, 30.0), host)
    assert type(device).__module__.rpartition(".")[2].startswith("torch_")
    machine, expected = device.solve(matrix_of(K, 30.0), problem, 1e-7), host.solve(K, problem, 1e-9)
    assert machine_gap(problem, machine.alpha, K @ machine.alpha) <= 1.1e-7
    np.testing.assert_allclose(machine.fitted, K @ machine.alpha, atol=1e-7)
    lower, upper = problem.box()
    assert (machine.alpha >= lower).all()
    assert (machine.alpha <= upper).all()
    assert problem.has_right_sum(machine.alpha)
    f, g = machine.fitted, expected.fitted
    offset = (f - g).mean() if fit_intercept else 0.0
    np.testing.assert_allclose(f - offset, g, atol=2e-2)


def test_single_precision_reaches_the_usual_gap(rng):
    K, problem = problem_of(Hinge(), rng, n=300, C=10.0)
    machine = machine_for(matrix_of(K, 30.3, torch.float32), choose_single("auto", Hinge())).solve(
        matrix_of(K, 30.3, torch.float32), problem, 1e-4
    )
    assert machine_gap(problem, machine.alpha, K @ machine.alpha) <= 1.2e-4
    assert (machine.alpha == 0.0).sum() > 50  # samples that do not matter have no share, not a tiny one


def test_a_warm_start_takes_fewer_steps(rng):
    K, problem = problem_of(Hinge(), rng, n=300, C=10.0)
    machine = machine_for(matrix_of(K), choose_single("auto", Hinge()))
    cold = machine.solve(matrix_of(K), problem, 1e-6)
    warm = machine.solve(matrix_of(K), problem, 1e-6, cold.alpha)
    assert warm.n_iter < cold.n_iter


def test_a_machine_that_cannot_improve_stops(rng):
    K, problem = problem_of(Hinge(), rng, n=60)
    machine = machine_for(matrix_of(K), choose_single("auto", Hinge())).solve(matrix_of(K), problem, 1e-16)
    assert machine_gap(problem, machine.alpha, K @ machine.alpha) < 1e-8


def test_several_outputs_at_once(rng):
    K, problem = problem_of(Squared(), rng)
    both = Problem(np.hstack([problem.y, -2.0 * problem.y]), Squared(), problem.C)
    host = choose_single("auto", Squared())
    machine = machine_for(matrix_of(K, 30.0), host).solve(matrix_of(K, 30.0), both, 1e-8)
    np.testing.assert_allclose(machine.alpha, host.solve(K, both, 1e-8).alpha, atol=1e-6)


@pytest.mark.parametrize("loss", [Squared(), Logistic()], ids=lambda loss: type(loss).__name__)
def test_conjugate_gradients_where_factors_do_not_fit(loss, rng, monkeypatch):
    from kernelweave.solvers.single import torch_smooth

    monkeypatch.setattr(torch_smooth, "MOST_FACTORED", 10)
    K, problem = problem_of(loss, rng)
    machine = machine_for(matrix_of(K, 30.0), choose_single("auto", loss)).solve(
        matrix_of(K, 30.0), problem, 1e-6
    )
    assert machine_gap(problem, machine.alpha, K @ machine.alpha) <= 1.1e-6


@pytest.mark.parametrize("kink", [0.0, 0.2])
@pytest.mark.parametrize("tied", [True, False])
def test_projection_is_the_nearest_point(kink, tied, rng):
    from kernelweave.solvers.single._torch_descent import BoxProjection

    lower, upper = -rng.uniform(0.1, 1.0, size=40), rng.uniform(0.1, 1.0, size=40)
    v, total, step = 2.0 * rng.normal(size=40), 1.5, 0.7
    project = BoxProjection(torch.as_tensor(lower), torch.as_tensor(upper), kink, total, tied)
    x = project(torch.as_tensor(v), torch.tensor(step, dtype=torch.float64)).numpy()
    assert not tied or x.sum() == pytest.approx(total, abs=1e-9)
    # x + step kink sign(x) = v - mu wherever x is inside
    inside = (x > lower + 1e-9) & (x < upper - 1e-9) & (x != 0.0)
    mu = (v - x - step * kink * np.sign(x))[inside]
    np.testing.assert_allclose(mu, mu[0] if tied else 0.0, atol=1e-7)


def test_samples_without_a_dual_variable_are_left_out(rng, monkeypatch):
    from kernelweave.solvers.single import torch_box

    K, problem = problem_of(Hinge(), rng, C=10.0)
    monkeypatch.setattr(torch_box, "LEAST_SHRUNK", 20)
    sizes = []
    rounds = torch_box.TorchBox._rounds

    def noted(self, descent, *args):
        sizes.append(len(descent.a))
        return rounds(self, descent, *args)

    monkeypatch.setattr(torch_box.TorchBox, "_rounds", noted)
    few = torch_box.TorchBox().solve(matrix_of(K, 30.0, torch.float32), problem, 1e-5)
    assert min(sizes) < 60
    assert machine_gap(problem, few.alpha, K @ few.alpha) <= 1.1e-5
    # the start itself is not spoiled by rounding of its sum
    assert np.count_nonzero(problem.feasible(few.alpha)) == np.count_nonzero(few.alpha) < 120


@pytest.mark.parametrize(
    "loss", [Hinge(), EpsInsensitive(0.1), OneClass()], ids=lambda loss: type(loss).__name__
)
def test_gaps_on_the_device_are_those_of_the_host(loss, rng):
    from kernelweave.solvers.single._torch_descent import Descent, DualBox

    for fit_intercept in (True, False):
        K, problem = problem_of(loss, rng, n=40, fit_intercept=fit_intercept)
        descent = Descent(matrix_of(K, 30.0), DualBox.of(problem, torch.device("cpu")), problem.start()[:, 0])
        for _ in range(3):
            descent.steps(3)
            machine = descent.machine(problem, 0)
            expected = machine_gap(problem, machine.alpha, machine.fitted)
            assert descent.gap() == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_exchanged_sets_end_at_the_solution(rng):
    from kernelweave.solvers.single._torch_descent import Descent, DualBox

    K, problem = problem_of(Hinge(), rng, C=3.0)
    descent = Descent(
        matrix_of(K - 30.0 + np.eye(120)), DualBox.of(problem, torch.device("cpu")), problem.start()[:, 0]
    )
    descent.steps(15)
    assert descent.gap() > 1e-4
    for _ in range(5):  # each keeps the best of its points
        descent.exchange()
    assert descent.gap() < 1e-7


def test_systems_without_a_factor(rng, monkeypatch):
    from kernelweave.gram.torch import sums
    from kernelweave.solvers.single import torch_smooth

    monkeypatch.setattr(torch_smooth, "MOST_FACTORED", 10)
    monkeypatch.setattr(sums, "LANDMARKS", 30)
    x = rng.normal(size=(80, 2))
    K = np.exp(-0.3 * ((x[:, None] - x) ** 2).sum(axis=2)) + 0.5 * np.eye(80) + 2.0
    extra, right = rng.uniform(0.01, 0.1, size=80), rng.normal(size=(80, 2))
    got = torch_smooth.solve_shifted(
        matrix_of(K, 2.0), torch.as_tensor(extra), torch.as_tensor(right), 1e-10, most=40
    )
    np.testing.assert_allclose(got.numpy(), np.linalg.solve(K + np.diag(extra), right), rtol=1e-6, atol=1e-7)


def test_compiled_steps_are_the_plain_ones(rng):
    from kernelweave.solvers.single import _torch_descent

    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    pytest.importorskip("triton", reason="needs Triton")
    for loss, fit_intercept in ((Hinge(), True), (EpsInsensitive(0.1), True), (Hinge(), False)):
        K, problem = problem_of(loss, rng, n=3000, fit_intercept=fit_intercept)
        S = torch.as_tensor(K - 30.0, device="cuda").float()
        matrix = type(matrix_of(np.eye(1)))(S, 30.0)
        both = []
        for compiled in (True, False):
            box = _torch_descent.DualBox.of(problem, S.device)
            descent = _torch_descent.Descent(matrix, box, problem.start()[:, 0])
            with pytest.MonkeyPatch.context() as patch:
                if not compiled:
                    patch.setattr(_torch_descent, "loops_for", lambda tensor: None)
                descent.steps(20)
            both.append(descent)
        assert float((both[0].a - both[1].a).abs().max()) <= 1e-7
        few = torch.arange(100, device="cuda")
        torch.testing.assert_close(
            matrix.multiply_from(few, both[0].a[few]), S[:, few].double() @ both[0].a[few]
        )
