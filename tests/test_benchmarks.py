"""The benchmarks measure what they say: certificates, bounds, exponents and the page. Nothing is timed."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from kernelweave import LpNorm, MKLRegressor, Views
from kernelweave.gram import DenseGram
from kernelweave.losses import Hinge
from kernelweave.solvers import Problem
from kernelweave.solvers.certificate import certificate
from kernelweave.solvers.multiple import choose_solver

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"
SUITE = FOLDER / "benchopt_mkl"
NORMS = [1.0, 4 / 3, 2.0, 4.0]


@pytest.fixture
def load(monkeypatch):
    """Import a module of the benchmarks, as their own interpreter would."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


@pytest.fixture
def problem(load):
    """Matrices, labels, and the problem they make."""
    Ks, y = load("workloads").simulated(60, 5)
    return Ks, y, Problem(y[:, None], Hinge(), np.ones((60, 1)))


def test_simulated_kernels_are_normalised(problem):
    Ks, y, _ = problem
    spread = [K.diagonal().mean() - K.mean() for K in Ks]
    np.testing.assert_allclose(spread, 1.0)
    assert set(y) == {-1.0, 1.0}


@pytest.mark.parametrize("p", NORMS)
def test_user_loops_end_within_their_gap(load, problem, p):
    Ks, y, task = problem
    loops = load("user_loops")
    fit = loops.cutting_planes(Ks, y, 1.0) if p == 1 else loops.closed_form(Ks, y, 1.0, p)
    alpha, gram = task.feasible(fit.alpha[:, None]), DenseGram(Ks)
    proof = certificate(task, gram, LpNorm(p), alpha, fit.weights)
    assert proof.machine_gap < 1e-3
    bound = alpha if fit.bound is None else task.feasible(fit.bound[:, None])
    dual = max(proof.dual, certificate(task, gram, LpNorm(p), bound, fit.weights).dual)
    optimum = choose_solver("auto", LpNorm(p)).solve(task, gram, LpNorm(p), tol=1e-6).state.certificate.dual
    assert fit.gap <= 1e-3
    assert dual >= (1.0 - fit.gap) * optimum - 1e-9
    assert (proof.primal - dual) / proof.primal <= fit.gap + 1e-6


@pytest.mark.parametrize("machines", [1, 3])
def test_a_loop_cut_short_returns_a_machine_trained_at_its_weights(load, problem, machines):
    Ks, y, task = problem
    loops = load("user_loops")
    fits = {
        1.0: loops.cutting_planes(Ks, y, 1.0, gap=0.0, most=machines),
        2.0: loops.closed_form(Ks, y, 1.0, 2.0, gap=0.0, most=machines),
    }
    for p, fit in fits.items():
        proof = certificate(task, DenseGram(Ks), LpNorm(p), task.feasible(fit.alpha[:, None]), fit.weights)
        assert fit.n_machines == machines
        assert proof.machine_gap < 1e-3


def test_exponents_are_those_of_the_power(load):
    growth = load("bench_growth")
    points = [
        {"along": along, "p": p, "n": size, "M": size, "seconds": 1e-6 * size**power}
        for along, power in (("n", 1.5), ("M", 0.7))
        for p in growth.NORMS
        for size in (10, 20, 40, 80)
    ]
    for found in growth.exponents(points):
        power = {"n": 1.5, "M": 0.7}[found["along"]]
        assert found["exponent"] == pytest.approx(power)
        assert found["last_step"] == pytest.approx(power)


def test_growth_times_fits_that_converged(load):
    growth = load("bench_growth")
    point = growth.measure(*growth.workload(60, 5, real=False), 2.0)
    assert point["converged"]
    assert point["gap"] <= 1e-3


def test_smkl_times_stationary_fits_and_finds_the_power(load, rng):
    smkl = load("bench_smkl")
    X, y = smkl.breast_cancer()
    rows = rng.permutation(len(y))[:60]
    point = smkl.measure(X[rows], y[rows], 5, repeats=1)
    assert point["residual"] <= 1e-3
    assert 1 <= point["selected"] <= 5
    assert smkl.exponent([10, 20, 80], [1e-3 * size**1.3 for size in (10, 20, 80)]) == pytest.approx(1.3)


def test_page_has_what_the_files_say(load, tmp_path):
    page = load("page")
    points = [{"seconds": 0.125, "gap": 0.5}, {"seconds": 0.25, "gap": 5e-4}]
    curve = {"data": "simulated", "n": 60, "M": 5, "p": 4 / 3, "solver": "kernelweave", "points": points}
    other = {**curve, "solver": "other", "points": points[:1]}
    printed = {"arguments": ["500"], "output": "one line\n", "exit_code": 1}
    for name, result in {"benchopt_mkl": {"curves": [other, curve]}, "bench_end_to_end": printed}.items():
        path = tmp_path / "results" / "data" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"cores": 2, **result}))
    (tmp_path / "images").mkdir()
    text = page.write_page(tmp_path).read_text()
    assert "| kernelweave | 0.25 s |\n| other | gap 0.5 in 0.12 s |" in text
    assert "p = 4/3" in text
    assert "two cores" in text
    assert "$ python benchmarks/bench_end_to_end.py 500\none line" in text
    assert "promise broken" in text


@pytest.mark.parametrize("path", sorted(FOLDER.glob("bench_*.py")), ids=lambda path: path.stem)
def test_every_script_has_a_title_for_the_page(load, path, tmp_path):
    result = {"arguments": [], "output": "", "exit_code": 0}
    title, text = load("page").script_section(path.stem, result, tmp_path).split("\n", 1)
    assert 20 < len(title) < 130
    assert "    python benchmarks" not in text


@pytest.fixture(scope="module")
def suite():
    """The benchopt benchmark."""
    benchopt = pytest.importorskip(
        "benchopt.benchmark", reason="benchopt is not installed: pip install benchopt"
    )
    path, modules = sys.path.copy(), set(sys.modules)
    benchmark = benchopt.Benchmark(SUITE, no_cache=True)
    yield benchmark
    sys.modules["benchmark_utils"].ONE_THREAD.restore_original_limits()
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith(("benchmark_utils", "benchopt_benchmarks")):
            del sys.modules[name]


@pytest.fixture
def objective(suite, request, problem):
    """The benchmark's objective on a small problem."""
    instance = suite.get_benchmark_objective().get_instance(p=request.param, C=1.0)
    instance.set_data(*problem[:2])
    return instance


@pytest.mark.parametrize("objective", NORMS, indirect=True)
def test_objective_is_the_certificate(objective, problem, rng):
    Ks, y, task = problem
    alpha = task.feasible(rng.uniform(0.0, 1.0, size=(60, 1)) * y[:, None])
    weights = rng.uniform(size=5)
    proof = certificate(task, DenseGram(Ks), LpNorm(objective.p), alpha, weights)
    values = objective.evaluate_result(alpha[:, 0], weights)
    assert values["value"] == pytest.approx(proof.primal)
    assert values["gap"] == pytest.approx(proof.gap)
    better = objective.evaluate_result(alpha[:, 0], weights, bound=np.zeros(60))
    assert better["dual"] == max(proof.dual, 0.0)


SOLVERS = ["kernelweave", "kernelweave_interleaved", "closed_form", "cutting_planes", "mklpy", "himalaya"]


def test_every_solver_of_the_suite_is_tested_here():
    assert {path.stem for path in (SUITE / "solvers").glob("*.py")} == set(SOLVERS)


@pytest.mark.parametrize("objective", [1.0, 2.0], indirect=True)
@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.filterwarnings("default")  # of the packages it is compared with
def test_solver_returns_feasible_dual_variables_and_weights(suite, objective, problem, name):
    solver_class = next(cls for cls in suite.get_solvers() if Path(cls._module_filename).stem == name)
    if not solver_class.is_installed(quiet=True):
        pytest.skip(f"{solver_class.name} is not installed")
    solver, task = solver_class.get_instance(), problem[2]
    skip, reason = solver._set_objective(objective)
    if skip:
        pytest.skip(reason)
    solver.run({"tolerance": 1e-3, "iteration": 30, "run_once": 1}[solver.sampling_strategy])
    result = solver.get_result()
    alpha = result["alpha"][:, None]
    np.testing.assert_allclose(task.feasible(alpha), alpha, atol=1e-8)
    assert (result["weights"] >= 0).all()
    assert np.linalg.norm(result["weights"], objective.p) == pytest.approx(1.0)
    gap = objective.evaluate_result(**result)["gap"]
    assert 0.0 <= gap + 1e-12
    assert gap <= 1e-3 or name in ("mklpy", "himalaya")


@pytest.mark.parametrize(
    ("strategy", "stops"), [("tolerance", [False, False, True]), ("iteration", [False, True, True])]
)
def test_a_curve_ends_at_the_certified_gap(suite, strategy, stops):
    criterion = sys.modules["benchmark_utils"].CertifiedGap(strategy=strategy)
    curve = [{"objective_gap": gap, "stop_val": tol} for gap, tol in ((0.1, 0.1), (5e-4, 1e-2), (5e-4, 1e-3))]
    assert [criterion.check_convergence(curve[: k + 1])[0] for k in range(3)] == stops


def test_a_curve_ends_when_it_stalls(suite):
    criterion = sys.modules["benchmark_utils"].CertifiedGap(strategy="iteration", patience=3)
    curve = [{"objective_gap": gap, "stop_val": 1} for gap in (0.5, 0.2, 0.3, 0.3, 0.3)]
    assert [criterion.check_convergence(curve[: k + 1])[0] for k in range(5)] == [False] * 4 + [True]


def test_missing_data_are_skipped_with_a_reason(suite, monkeypatch, tmp_path):
    monkeypatch.setenv("KERNELWEAVE_DATA", str(tmp_path))
    dataset = next(cls for cls in suite.get_datasets() if cls.name == "MNIST odd-even").get_instance()
    objective = suite.get_benchmark_objective().get_instance(p=2, C=1.0)
    skip, reason = objective._set_dataset(dataset)
    assert skip
    assert "KERNELWEAVE_DATA" in reason


def test_what_no_choice_costs_is_measured_on_twenty_kernels(load):
    bench = load("bench_auto")
    views, y = bench.simulated(30)
    assert len(MKLRegressor(bench.KERNELS).fit(Views(views), y).weights_) == 20
    assert set(bench.two_classes(30)[1]) == {False, True}
