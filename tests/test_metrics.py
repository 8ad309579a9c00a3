"""Metrics of survival against their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import kernelweave as kw
from kernelweave import metrics
from kernelweave.kernels import Linear
from kernelweave.metrics import (
    SurvivalScorer,
    brier_scorer,
    brier_scores,
    concordance_harrell,
    concordance_jackknife,
    concordance_uno,
    harrell_scorer,
    integrated_brier,
    kaplan_meier,
    log_rank,
    uno_scorer,
)


def harrell_by_pairs(event: Any, time: Any, risk: Any, weight: Any) -> float:
    """The definition, pair by pair."""
    right = pairs = 0.0
    for i in np.flatnonzero(event):
        for j in range(len(time)):
            if time[i] < time[j] or (time[i] == time[j] and not event[j]):
                pairs += weight[i] * weight[j]
                right += weight[i] * weight[j] * np.heaviside(risk[i] - risk[j], 0.5)
    return right / pairs


@pytest.mark.parametrize("seed", range(6))
def test_harrell_is_its_definition(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ties of times and risks, and lengths around powers of 2; counted by a table, and in parts."""
    monkeypatch.setattr(metrics, "FEW", 10 * (seed % 2))
    rng = np.random.default_rng(seed)
    n = (8, 3, 7, 9, 31, 8)[seed]
    event, time = rng.random(n) < 0.6, rng.integers(0, n // 2 + 1, n).astype(float)
    event[0], time[0] = True, -1.0  # earlier than all others
    risk, weight = rng.integers(0, 5, n) / 4, rng.integers(1, 4, n).astype(float)
    assert concordance_harrell(event, time, risk) == pytest.approx(
        harrell_by_pairs(event, time, risk, np.ones(n)), abs=1e-14
    )
    weighted = concordance_harrell(event, time, risk, weight)
    assert weighted == pytest.approx(harrell_by_pairs(event, time, risk, weight), abs=1e-14)
    copies = np.repeat(np.arange(n), weight.astype(int))
    repeated = concordance_harrell(event[copies], time[copies], risk[copies])
    assert repeated == pytest.approx(weighted, abs=1e-14)


@pytest.mark.parametrize("n", [7, 32])
def test_the_jackknife_is_the_slope_in_the_weights(n: int) -> None:
    """C + n dC/dw_i by differences, with ties of times and risks; the mean is C."""
    rng = np.random.default_rng(n)
    event, time = rng.random(n) < 0.6, rng.integers(0, n // 2, n).astype(float)
    event[0], time[0], risk, step = True, -1.0, rng.integers(0, 5, n) / 4, 1e-5
    found = concordance_jackknife(event, time, risk)
    whole = concordance_harrell(event, time, risk)
    assert found.mean() == pytest.approx(whole, abs=1e-14)
    for i in range(n):
        up, down = (
            concordance_harrell(event, time, risk, np.where(np.arange(n) == i, 1.0 + h, 1.0))
            for h in (step, -step)
        )
        assert found[i] == pytest.approx(whole + n * (up - down) / (2 * step), abs=1e-6)
    assert np.isnan(concordance_jackknife([False, False], [1.0, 2.0], [0.0, 1.0])).all()


def test_the_error_of_a_concordance_is_that_of_new_samples() -> None:
    rng = np.random.default_rng(0)
    values, errors = [], []
    for _ in range(300):
        risk = rng.normal(size=60)
        died, end = rng.exponential(np.exp(-risk)), rng.exponential(2.0, size=60)
        found = concordance_jackknife(died <= end, np.minimum(died, end), risk)
        values.append(found.mean())
        errors.append(found.std(ddof=1) / np.sqrt(60))
    assert np.mean(errors) == pytest.approx(np.std(values), rel=0.12)


def test_harrell_of_nothing_to_compare() -> None:
    assert np.isnan(concordance_harrell([False, False], [1.0, 2.0], [0.0, 1.0]))
    assert np.isnan(concordance_harrell([True], [1.0], [0.0]))
    assert np.isnan(concordance_harrell([True, True], [1.0, 1.0], [0.0, 1.0]))
    assert concordance_harrell([True, False], [0.0, 0.0], [1.0, 0.0]) == 1.0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"event": [0, 2]}, "event must be"),
        ({"time": [1.0, np.nan]}, "time must be"),
        ({"risk": [[1.0], [2.0]]}, "risk must be"),
        ({"sample_weight": [1.0, -1.0]}, "sample_weight has negative"),
        ({"risk": [1.0]}, "inconsistent numbers"),
    ],
)
def test_harrell_says_what_is_wrong(wrong: dict[str, Any], message: str) -> None:
    right = {"event": [1, 0], "time": [1.0, 2.0], "risk": [1.0, 2.0]}
    with pytest.raises(ValueError, match=message):
        concordance_harrell(**(right | wrong))


# -- Uno's concordance, Brier scores, curves -------------------------------------------------------------


def cohort(seed: int, n: int = 40) -> tuple[Any, Any, Any, Any]:
    """Events, times with ties, risks with ties, whole weights; the last sample is an event."""
    rng = np.random.default_rng(seed)
    event, time = rng.random(n) < 0.6, rng.integers(1, 25, n).astype(float)
    event[-1], time[-1] = True, 25.0
    return event, time, np.round(rng.normal(size=n), 1), rng.integers(1, 4, n).astype(float)


def uncensored(event: Any, time: Any, at: float, weight: Any) -> float:
    """G by its definition: at every time, who is censored among those that are left after the events."""
    G = 1.0
    for t in np.unique(time[time <= at]):
        left = weight[(time > t) | ((time == t) & ~event)].sum()
        gone = weight[(time == t) & ~event].sum()
        G *= 1.0 - gone / left if gone else 1.0
    return G


@pytest.mark.parametrize("tau", [None, 15.0])
def test_uno_is_its_definition(tau: float | None) -> None:
    event, time, risk, weight = cohort(0)
    right = pairs = 0.0
    for i in np.flatnonzero(event & (time < (np.inf if tau is None else tau))):
        for j in range(len(time)):
            if time[i] < time[j] or (time[i] == time[j] and not event[j]):
                own = weight[i] * weight[j] / uncensored(event, time, time[i], weight) ** 2
                pairs, right = pairs + own, right + own * np.heaviside(risk[i] - risk[j], 0.5)
    assert concordance_uno(event, time, risk, tau, sample_weight=weight) == pytest.approx(right / pairs)
    everybody = np.ones(40, dtype=bool)
    assert concordance_uno(everybody, time, risk, tau=99.0) == concordance_harrell(everybody, time, risk)


def test_brier_scores_are_their_definition() -> None:
    event, time, _, weight = cohort(1)
    times = np.array([2.0, 7.5, 14.0])
    S = np.random.default_rng(0).random((40, 3))
    expected = []
    for k, t in enumerate(times):
        parts = np.zeros(40)
        for i in range(40):
            if time[i] <= t and event[i]:
                parts[i] = S[i, k] ** 2 / uncensored(event, time, time[i], weight)
            elif time[i] > t:
                parts[i] = (1.0 - S[i, k]) ** 2 / uncensored(event, time, t, weight)
        expected.append(np.average(parts, weights=weight))
    found = brier_scores(event, time, S, times, sample_weight=weight)
    np.testing.assert_allclose(found, expected, atol=1e-14)
    mean = np.trapezoid(expected, times) / 12.0
    assert integrated_brier(event, time, S, times, sample_weight=weight) == pytest.approx(mean)


def test_without_censoring_the_brier_score_is_a_mean_square() -> None:
    _, time, _, _ = cohort(2)
    S = np.random.default_rng(0).random((40, 1))
    expected = np.mean((S[:, 0] - (time > 9.0)) ** 2)
    assert brier_scores(np.ones(40), time, S, [9.0])[0] == pytest.approx(expected)


def test_kaplan_meier_without_censoring_and_with_weights() -> None:
    event, time, _, weight = cohort(3)
    times, S = kaplan_meier(np.ones(40), time)
    np.testing.assert_allclose(S, [(time > t).mean() for t in times], atol=1e-14)
    copies = np.repeat(np.arange(40), weight.astype(int))
    np.testing.assert_allclose(kaplan_meier(event, time, weight), kaplan_meier(event[copies], time[copies]))


def test_log_rank_of_permuted_groups() -> None:
    """Groups drawn at random differ at the level 0.1 in one of ten draws; shifted ones do."""
    rng = np.random.default_rng(0)
    event, time, _, _ = cohort(4, 60)
    values = np.array([log_rank(event, time, rng.permutation(np.arange(60) % 3)).p_value for _ in range(400)])
    assert (values < 0.1).mean() == pytest.approx(0.1, abs=3 * np.sqrt(0.09 / 400))
    found = log_rank(event, time, time > np.median(time))
    assert found.p_value < 1e-6
    assert found.observed.sum() == pytest.approx(found.expected.sum())


def test_what_is_wrong_with_curves() -> None:
    event, time, risk, _ = cohort(5)
    S = np.full((40, 2), 0.5)
    with pytest.raises(ValueError, match="probabilities of shape"):
        brier_scores(event, time, S, [3.0])
    with pytest.raises(ValueError, match="probabilities of shape"):
        brier_scores(event, time, 2.0 * S + 0.1, [3.0, 4.0])
    with pytest.raises(ValueError, match="times must rise"):
        brier_scores(event, time, S, [4.0, 3.0])
    with pytest.raises(ValueError, match="two or more"):
        integrated_brier(event, time, S[:, :1], [3.0])
    with pytest.raises(ValueError, match="pass smaller tau"):
        concordance_uno(event, time, risk, train=([False, True], [1.0, 2.0]))
    with pytest.raises(ValueError, match="one label"):
        log_rank(event, time, np.zeros(40))


# -- scikit-survival ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_same_as_scikit_survival(seed: int) -> None:
    metrics = pytest.importorskip("sksurv.metrics", reason="scikit-survival is not installed")
    from sksurv.compare import compare_survival
    from sksurv.nonparametric import kaplan_meier_estimator
    from sksurv.util import Surv

    event, time, risk, _ = cohort(seed, 150)
    train = cohort(seed + 10, 200)[:2]
    y, y_train = Surv.from_arrays(event, time), Surv.from_arrays(*train)
    near = {"rel": 1e-12}
    theirs = metrics.concordance_index_censored(event, time, risk)[0]
    assert concordance_harrell(event, time, risk) == pytest.approx(theirs, **near)
    for tau in (None, 12.0):
        theirs = metrics.concordance_index_ipcw(y_train, y, risk, tau=tau)[0]
        assert concordance_uno(event, time, risk, tau, train) == pytest.approx(theirs, **near)
    times = np.array([1.0, 6.0, 11.5, 20.0])
    S = np.random.default_rng(seed).random((150, 4))
    np.testing.assert_allclose(
        brier_scores(event, time, S, times, train), metrics.brier_score(y_train, y, S, times)[1], rtol=1e-12
    )
    theirs = metrics.integrated_brier_score(y_train, y, S, times)
    assert integrated_brier(event, time, S, times, train) == pytest.approx(theirs, **near)
    np.testing.assert_allclose(kaplan_meier(event, time), kaplan_meier_estimator(event, time), rtol=1e-12)
    group = np.digitize(risk, [-0.5, 0.5])
    found = log_rank(event, time, group)
    np.testing.assert_allclose([found.statistic, found.p_value], compare_survival(y, group), rtol=1e-9)


# -- scorers --------------------------------------------------------------------------------------


def test_scorers_are_their_measures_in_every_search() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    died, end = rng.exponential(np.exp(-2.0 * X[:, 0])), rng.exponential(2.0, size=60)
    y = np.array(list(zip(died <= end, np.minimum(died, end), strict=True)), dtype="?, f8")
    model = kw.MKLSurvival([Linear()]).fit(X, y)
    event, time, risk = y["f0"], y["f1"], model.predict(X)
    assert harrell_scorer(model, X, y) == concordance_harrell(event, time, risk)
    assert uno_scorer(model, X, y) == concordance_uno(event, time, risk, tau=time.max())
    assert SurvivalScorer("uno", tau=1.0)(model, X, y) == concordance_uno(event, time, risk, tau=1.0)
    times = [0.2, 0.5, 1.0]
    survival = [curve(times) for curve in model.predict_survival_function(X)]
    expected = -integrated_brier(event, time, survival, times)
    assert SurvivalScorer("brier", times=times)(model, X, y) == pytest.approx(expected)
    assert -0.25 < brier_scorer(model, X, y) < 0.0

    several = {"uno": uno_scorer, "brier": brier_scorer}
    search = GridSearchCV(
        kw.MKLSurvival([Linear()]), {"C": [1e-4, 1.0]}, cv=3, scoring=several, refit="brier"
    )
    assert search.fit(X, y).best_params_ == {"C": 1.0}
    by_uno = kw.MKLSurvivalCV([Linear()], Cs=[0.1, 1.0], cv=3, scoring=uno_scorer).fit(X, y)
    assert by_uno.best_score_ > 0.6
    with pytest.raises(ValueError, match=r"needs survival curves.*GridSearchCV"):
        kw.MKLSurvivalCV([Linear()], Cs=[0.1, 1.0], cv=3, scoring=brier_scorer).fit(X, y)
    with pytest.raises(ValueError, match="measure='roc' must be one of"):
        SurvivalScorer("roc")
    assert repr(SurvivalScorer("uno", tau=1.0)) == "SurvivalScorer('uno', tau=1.0)"
