"""scikit-learn's own checks, for the defaults and for configurations that take other paths."""

from __future__ import annotations

from sklearn.utils.estimator_checks import parametrize_with_checks

import kernelweave as kw
from kernelweave.kernels import RBF, Linear

#: widths that follow weights: with gamma="scale", as in SVC, a weight of 2 is not quite a row given twice
PAIR = [Linear(), RBF("weighted")]

DEFAULTS = [kw.MKLClassifier(), kw.MKLRegressor(), kw.MKLOneClass()]

CLASSIFIERS = [
    kw.MKLClassifier(PAIR, loss="logistic", regularizer=kw.LpNorm(p=1), multiclass="ovo"),
    kw.MKLClassifier(PAIR, loss="squared_hinge", regularizer="uniform", normalize="spherical"),
    kw.MKLClassifier(PAIR, loss="squared", multiclass="shared", normalize="center"),
    kw.MKLClassifier(PAIR, normalize=None, class_weight="balanced"),
]

REGRESSORS = [
    kw.MKLRegressor(PAIR, loss="eps_insensitive", regularizer=kw.LpNorm(p=1), normalize="trace"),
    kw.MKLRegressor(PAIR, loss="huber", regularizer="uniform", multioutput="independent"),
    kw.MKLRegressor(PAIR, normalize="center", fit_intercept=False),
]

GREEDY = [
    kw.GroupOMPClassifier(),
    kw.GroupOMPClassifier(PAIR, loss="hinge", normalize="spherical", class_weight="balanced"),
    kw.GroupOMPClassifier(PAIR, loss="logistic", normalize="center", backward=True),
    kw.GroupOMPRegressor(),
    kw.GroupOMPRegressor(PAIR, loss="huber", normalize="trace", fit_intercept=False),
    kw.GroupOMPClassifierCV(PAIR, alphas=[0.01, 0.1], cv=3),
    kw.GroupOMPRegressorCV(PAIR, alphas=[0.01, 0.1], cv=3, one_standard_error=True),
    kw.GroupOMPRegressor(PAIR, n_kernels=1, normalize=None, backward=True, tol=0.0),
]

DETECTORS = [
    kw.MKLOneClass(PAIR, regularizer=kw.LpNorm(p=1), normalize="spherical"),
    kw.MKLOneClass(PAIR, regularizer="uniform", normalize=None, nu=0.2),
]


@parametrize_with_checks(DEFAULTS + CLASSIFIERS + REGRESSORS + GREEDY + DETECTORS)
def test_check_estimator(estimator, check):
    check(estimator)
