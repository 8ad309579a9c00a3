"""Random fits against the certificate of `reference`: a claim of convergence is never false, and fits end."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from . import reference
from .cases import Case, draw

#: seconds of CPU that no small fit may take
MOST_SECONDS = 60.0

#: error of predictions relative to the terms they are sums of; double precision, with room for sums
MOST_ERROR = 1e-13


class Outcome(NamedTuple):
    """What a fit claimed, what is true, and how long it took."""

    case: Case
    claimed: float
    true: reference.Gap
    seconds: float
    warned: bool

    @property
    def false(self) -> bool:
        return self.claimed <= self.case.tol and not self.true.relative <= 2.0 * self.case.tol

    def __str__(self) -> str:
        return f"{self.case}: claimed {self.claimed:.3g}, true {self.true}, {self.seconds:.1f} s"


def outcome(seed: int) -> Outcome:
    """Fit the case of a seed and certify it."""
    case = draw(seed)
    estimator, start = case.estimator(), time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(case.X, case.y, sample_weight=case.sample_weight)
    seconds = time.process_time() - start
    warned = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    return Outcome(case, float(estimator.dual_gap_), certify(case, estimator), seconds, warned)


def certify(case: Case, model: Any) -> reference.Gap:
    """The gap of the model, recomputed from the raw data."""
    used = case.sample_weight > 0
    X, weight = case.X[used], case.sample_weight[used]
    y = np.where(case.y[used] == "yes", 1.0, -1.0) if case.y.dtype.kind != "f" else case.y[used]
    raw = [reference.kernel(kind, own, X[:, columns]) for kind, own, columns in case.kernels]
    Ks, sizes = (
        np.array([rule(K, case.normalize, weight) for K in raw])
        for rule in (reference.normalised, reference.roundings)
    )
    values = model.predict(X) if case.y.dtype.kind == "f" else model.decision_function(X)
    return reference.true_gap(
        Ks,
        sizes,
        y[:, None],
        case.C * weight,
        case.loss,
        case.width,
        case.regularizer,
        np.asarray(model.weights_),
        np.asarray(model.dual_coef_)[used, None],
        np.atleast_1d(model.intercept_),
        np.asarray(values)[:, None],
        case.fit_intercept,
    )


def check(seeds: range) -> None:
    """No claim is false, no prediction wrong, no fit silent or endless; in ordinary units all converge."""
    found = [outcome(seed) for seed in seeds]
    false = [str(one) for one in found if one.false]
    assert not false, "\n".join(false)
    # values on the boundary of a novelty detector are made zero
    wrong = [str(one) for one in found if one.true.error > MOST_ERROR and one.case.loss != "one_class"]
    assert not wrong, "\n".join(wrong)
    silent = [str(one) for one in found if not one.claimed <= one.case.tol and not one.warned]
    assert not silent, "\n".join(silent)
    endless = [str(one) for one in found if one.seconds > MOST_SECONDS]
    assert not endless, "\n".join(endless)
    failed = [str(one) for one in found if one.case.plain and not one.claimed <= one.case.tol]
    assert not failed, "\n".join(failed)
    gave_up = [str(one) for one in found if not one.claimed <= one.case.tol]
    assert len(gave_up) <= 0.05 * len(found), Counter(one.case.loss for one in found)


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_claims_of_convergence_are_true(first: int) -> None:
    check(range(first, first + 20))


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1_000, 3_000, 500))
def test_claims_of_convergence_are_true_on_many_more_fits(first: int) -> None:
    check(range(first, first + 500))
