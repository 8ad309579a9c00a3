"""The experiments run from end to end in quick mode; verdicts and pages follow from the committed rows."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
from reproduce import Mode, listing, load_experiment, run
from reproduce.index import index, short
from reproduce.learned import learned
from reproduce.page import Published, all_published, committed, page_of
from reproduce.store import Store
from reproduce.untestable import UNTESTABLE
from rich.console import Console

from kernelweave.datasets import find

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENTS = ROOT / "experiments"
DOCS = ROOT / "docs"
RESULTS = DOCS / "results"
COMMITTED = [name for name in sorted(listing(EXPERIMENTS)) if committed(DOCS, name).exists()]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(listing(EXPERIMENTS)))
def test_quick_mode_ends_with_a_comparison(name, tmp_path):
    missing = [data for data in load_experiment(name, EXPERIMENTS).data if find(data) is None]
    if missing:
        pytest.skip(f"no {missing[0]}.npz: set KERNELWEAVE_DATA to the folder that holds it")
    done = run([name], "quick", tmp_path, folder=EXPERIMENTS, docs=tmp_path, console=Console(quiet=True))
    assert done[name].lines
    rows = Store(tmp_path / f"{name}-quick.csv")
    assert Store(committed(tmp_path, name)).rows(rows.keys()) == rows.rows(rows.keys())
    assert f"# {name}: " in (tmp_path / "results" / f"{name}.md").read_text()


@pytest.fixture(scope="module")
def everything() -> list[Published]:
    """All committed rows, summarised anew."""
    return all_published(DOCS, EXPERIMENTS)


def test_every_page_and_verdict_follows_from_the_committed_rows(everything):
    assert [one.name for one in everything] == COMMITTED
    for one in everything:
        assert (RESULTS / f"{one.name}.md").read_text(encoding="utf-8") == page_of(one, RESULTS), one.name


def test_the_table_of_statements_follows_from_the_committed_rows(everything):
    assert (RESULTS / "index.md").read_text(encoding="utf-8") == index(everything)


def test_statements_that_cannot_be_judged_are_of_papers_that_have_experiments():
    papers = {short(load_experiment(name, EXPERIMENTS).paper) for name in listing(EXPERIMENTS)}
    assert UNTESTABLE.keys() <= papers
    assert all(
        line.verdict == "not testable here" and line.why for some in UNTESTABLE.values() for line in some
    )


def test_what_we_learned_follows_from_the_committed_rows(everything):
    text = learned({one.name: one.summary.standings for one in everything})
    page = RESULTS / "what-we-learned.md"
    assert not text or page.read_text(encoding="utf-8") == text
    assert "## Ranks" not in text or page.with_suffix(".png").is_file()


def test_committed_rows_are_those_of_the_experiments_as_they_are(everything):
    for one in everything:
        known = {one.experiment.key(cell) for cell in one.experiment.cells(Mode("full", 100))}
        assert set(one.store.keys()) <= known, one.name


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "index.md"], ids=lambda page: page.name)
def test_what_the_first_pages_say_of_ranks_and_noise_follows_from_the_committed_rows(everything, page):
    rows = {one.name: one.rows for one in everything}
    said = " ".join(page.read_text(encoding="utf-8").split())
    alternatives, noise_views = (importlib.import_module(name) for name in ("alternatives", "noise_views"))
    kinds = [("sets of several views", "MKLAutoClassifier"), ("sets of spectra", "MKLAutoRegressor")]
    for (sets, name), (title, _, ranks, _) in zip(
        kinds, alternatives.groups_of(rows["alternatives"]), strict=True
    ):
        others = {method: rank for method, rank in ranks.items() if method != "MKLAuto"}
        best = min(others, key=lambda method: others[method])
        count, own = int(title.split(", ")[1].split()[0]), ranks["MKLAuto"]
        assert (
            f"on {count} {sets}, `{name}` has the mean rank {own:.1f} among {len(ranks)} methods, "
            f"the best other one {others[best]:.1f} ({best})"
        ) in said
    lost = {
        method: [
            f"{np.mean(noise_views.losses(rows['noise-views'], data, method)):.1f}"
            for data in noise_views.SETS
        ]
        for method in ("MKLAuto", "uniform sum")
    }
    auto, uniform = ("{}, {} and {}".format(*lost[method]) for method in ("MKLAuto", "uniform sum"))
    assert (
        "With 20 views of noise beside those of mfeat, protein fold and rosmap, `MKLAutoClassifier` loses "
        f"{auto} points of accuracy (less than 0: it gains), and the uniform sum {uniform}"
    ) in said


@pytest.mark.parametrize("cells", [1, 5])
def test_runs_that_have_just_begun_are_summarised_and_decide_nothing(everything, cells):
    for one in everything:
        begun = one.experiment.summarise(one.store.rows(one.store.keys()[:cells]))
        single = {line.verdict for line in begun.lines if line.n < 2}
        assert single <= {"undecided", "ours alone", "not testable here"}, one.name


@pytest.mark.slow
def test_figures_are_drawn_from_committed_rows(everything):
    plt = pytest.importorskip("matplotlib.pyplot")
    for one in everything:
        if one.experiment.draw is not None:
            figure = one.experiment.draw(one.rows)
            assert any(ax.has_data() for ax in figure.axes), one.name
            plt.close(figure)
            assert (RESULTS / f"{one.name}.png").is_file()


@pytest.mark.parametrize("name", sorted(listing(EXPERIMENTS)))
def test_cells_are_plain_distinct_and_more_in_full_mode(name):
    experiment = load_experiment(name, EXPERIMENTS)
    quick, full = (experiment.cells(Mode(mode)) for mode in ("quick", "full"))
    assert len({experiment.key(cell) for cell in full}) == len(full)
    assert 0 < len(quick) <= len(full)


@pytest.mark.parametrize("mode", ["quick", "full"])
@pytest.mark.parametrize("name", sorted(listing(EXPERIMENTS)))
def test_cells_come_repetition_by_repetition(name, mode):
    """A run that is stopped has all methods of each repetition but the last."""
    cells = load_experiment(name, EXPERIMENTS).cells(Mode(mode))
    repetitions = [cell["split"] if "split" in cell else cell["seed"] for cell in cells]
    assert repetitions == sorted(repetitions)


@pytest.fixture
def shared(monkeypatch):
    """What experiments share, as modules."""
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    return importlib.import_module


@pytest.fixture
def labelled():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6))
    return X, np.where(X[:, 4] - X[:, 1] + 0.3 * rng.normal(size=80) >= 0.0, 1, -1)


def test_lp_svm_is_optimal(shared, labelled):
    X, y = labelled
    model = shared("_selectors").LPSVM(C=0.5).fit(X, y)

    def objective(w, b):
        return np.abs(w).sum() + 0.5 * np.maximum(0.0, 1.0 - y * (X @ w + b)).sum()

    least = objective(model.coef_, model.intercept_)
    rng = np.random.default_rng(1)
    for size in (1e-3, 1e-1, 1.0):
        steps = size * rng.normal(size=(200, 7))
        others = [objective(model.coef_ + step[:6], model.intercept_ + step[6]) for step in steps]
        assert min(others) >= least - 1e-9  # convex: no better point near by, none anywhere
    assert set(np.argsort(-np.abs(model.coef_))[:2]) == {1, 4}


def test_boosting_takes_the_votes_of_adaboost(shared):
    y = np.array([1, 1, 1, -1, -1, -1, -1, -1])
    votes = np.column_stack([np.ones(8), np.where(np.arange(8) == 3, 1, y), -np.ones(8)])
    weights = shared("_selectors").boost(votes, y, rounds=1)
    np.testing.assert_allclose(weights, [0.0, 0.5 * np.log(7.0), 0.0])
    assert not shared("_selectors").boost(np.column_stack([-y, -y]), y, rounds=5).any()  # below chance


def test_hsic_is_its_definition_and_ranks_what_counts(shared, labelled):
    X, y = labelled
    selectors, n = shared("_selectors"), len(y)
    distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    K, H = np.exp(-distances / 12.0), np.eye(n) - 1.0 / n
    np.testing.assert_allclose(
        selectors.hsic(distances, 6, y - y.mean()), np.trace(K @ H @ np.outer(y, y) @ H), rtol=1e-10
    )
    order = selectors.bahsic(X, y)
    assert set(order[:2]) == {1, 4}
    assert sorted(order) == list(range(6))


def test_options_come_from_the_training_part_alone(shared, labelled):
    X, y = labelled
    gmkl, selectors = shared("_gmkl"), shared("_selectors")
    parts = gmkl.divided(X, y, 0, 0.7)
    method = gmkl.Method(selectors.LPSVM, [(0.003,), (0.5,)])
    found = gmkl.chosen(method, parts, [2])
    flipped = gmkl.chosen(method, parts._replace(y_test=-parts.y_test), [2])
    np.testing.assert_array_equal(found.model.coef_, flipped.model.coef_)
    np.testing.assert_allclose(np.add(found.accuracies, flipped.accuracies), 100.0)
    assert min(found.accuracies) > 75.0
    assert np.all(np.array(found.ceilings) >= found.accuracies)
    assert gmkl.kept(found.sparsest.model) <= gmkl.kept(found.model)


def test_a_method_gives_a_row_for_every_number_of_features(data_folder, monkeypatch):
    monkeypatch.setenv("KERNELWEAVE_DATA", str(data_folder))
    row, *others = load_experiment("gmkl-uci", EXPERIMENTS).run("sonar", "OWL-QN", "usual", 0)
    assert row["accuracy"] > 60.0  # the majority: 53
    assert 1 <= row["kept"] <= 60
    assert [other["features"] for other in others] == ["5", "10", "15", "20", "25", "30"]
