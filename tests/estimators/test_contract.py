"""What holds of every estimator: the properties of `kernelweave.testing`, and scikit-learn's own checks."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import replace

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import kernelweave as kw
from kernelweave.kernels import RBF, Linear
from kernelweave.losses import Squared
from kernelweave.testing import check_mkl_estimator
from kernelweave.testing.estimators import contract, estimator_case

from ..targets import TARGETS, targets_for

#: widths that follow weights: with gamma="scale", as in SVC, a weight of 2 is not quite a row given twice
PAIR = [Linear(), RBF("weighted")]

#: every estimator as it comes; searches with a small grid
DEFAULTS = [
    kw.MKLClassifier(),
    kw.MKLRegressor(),
    kw.MKLOneClass(),
    kw.MKLClassifierCV(PAIR, regularizers=["lp"], Cs=[1.0], cv=2),
    kw.MKLRegressorCV(PAIR, regularizers=["lp"], Cs=[1.0], cv=2),
    kw.MKLAutoClassifier(RBF("weighted"), Cs=[1.0], cv=2),
    kw.MKLAutoRegressor(RBF("weighted"), Cs=[1.0], cv=2),
    kw.GroupOMPClassifier(),
    kw.GroupOMPRegressor(),
    kw.GroupOMPClassifierCV(PAIR, alphas=[0.1], cv=2),
    kw.GroupOMPRegressorCV(PAIR, alphas=[0.1], cv=2, one_standard_error=True),
    kw.GMKLClassifier(),
    kw.GMKLRegressor(),
    kw.GMKLOneClass(),
    kw.EmpiricalBayesClassifier(),
    kw.EmpiricalBayesRegressor(),
    kw.MKLSurvival(),
    kw.GroupOMPSurvival(),
    kw.MKLSurvivalCV(PAIR, regularizers=["lp"], Cs=[1.0], cv=2),
    kw.MKLAutoSurvival(RBF("weighted"), Cs=[1.0], cv=2),
    kw.MKLOrdinalClassifier(),
    kw.MKLQuantileRegressor(),
]

#: parameters that lead elsewhere in the code
OTHERS = [
    kw.GroupOMPClassifierCV(PAIR, alphas=[0.01, 0.1], cv=3),
    kw.GroupOMPRegressorCV(PAIR, alphas=[0.01, 0.1], cv=3, one_standard_error=True),
    kw.MKLClassifierCV(PAIR, regularizers=["lp", kw.ElasticNet()], Cs=[0.1, 1.0], cv=2),
    kw.MKLRegressorCV(PAIR, regularizers=["lp", "uniform"], Cs=[0.1, 1.0], cv=2),
    kw.MKLClassifier(PAIR, loss="logistic", regularizer=kw.LpNorm(p=1), multiclass="ovo"),
    kw.MKLClassifier(PAIR, loss="squared_hinge", regularizer="uniform", normalize="spherical"),
    kw.MKLClassifier(PAIR, loss="squared", multiclass="shared", normalize="center"),
    kw.MKLClassifier(PAIR, normalize=None, class_weight="balanced"),
    kw.MKLRegressor(PAIR, loss="eps_insensitive", regularizer=kw.LpNorm(p=1), normalize="trace"),
    kw.MKLRegressor(PAIR, loss="huber", regularizer="uniform", multioutput="independent"),
    kw.MKLRegressor(PAIR, normalize="center", fit_intercept=False),
    kw.MKLOneClass(PAIR, regularizer=kw.LpNorm(p=1), normalize="spherical"),
    kw.MKLOneClass(PAIR, regularizer="uniform", normalize=None, nu=0.2),
    kw.GroupOMPClassifier(PAIR, loss="hinge", normalize="spherical", class_weight="balanced"),
    kw.GroupOMPClassifier(PAIR, loss="logistic", normalize="center", backward=True),
    kw.GroupOMPRegressor(PAIR, loss="huber", normalize="trace", fit_intercept=False),
    kw.GroupOMPRegressor(PAIR, n_kernels=1, normalize=None, backward=True, tol=0.0),
    kw.EmpiricalBayesRegressor(PAIR, normalize="center", multioutput="independent", fit_intercept=False),
    kw.EmpiricalBayesClassifier(PAIR, method="regression"),
    kw.MKLRegressor(PAIR, loss="huber", regularizer="elasticnet"),
    kw.MKLRegressor(PAIR, regularizer="smkl"),
]


def test_every_estimator_is_checked() -> None:
    public = (getattr(kw, name) for name in kw.__all__)
    estimators = {thing for thing in public if inspect.isclass(thing) and issubclass(thing, BaseEstimator)}
    assert {model for model in estimators if hasattr(model, "predict")} == {type(model) for model in DEFAULTS}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("promise", contract.promises, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("estimator", [*DEFAULTS, *OTHERS], ids=repr)
def test_contract(estimator, promise):
    numbers, labels = (estimator_case(kind()).y for kind in (kw.MKLRegressor, kw.MKLClassifier))
    y = targets_for(estimator, numbers, labels)
    promise(estimator_case(estimator)._replace(y=y[0] if y else None))


class CountsWeightsTwice(kw.MKLRegressor):
    """A sample of weight 2 costs four times as much."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, None if sample_weight is None else sample_weight**2)


class Silent(kw.MKLClassifier):
    """Stops early, and nobody is told."""

    def fit(self, X, y, sample_weight=None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return super().fit(X, y, sample_weight)


class Shifted(kw.MKLRegressor):
    """Predicts another function than it learned."""

    def predict(self, X):
        return super().predict(X) + 1e-3


class SquaredLoss(kw.MKLRegressor):
    """An estimator without a parameter `loss`."""

    factor = 1.0

    def __init__(
        self,
        kernels="auto",
        *,
        regularizer="lp",
        C=1.0,
        normalize="variance",
        approximation=None,
        tol=1e-3,
        max_iter=200,
    ):
        params = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        super().__init__(**params)

    def _setup(self, X, y, sample_weight):
        setup = super()._setup(X, y, sample_weight)
        [one] = setup.problems
        costly = replace(one.problem, C=self.factor * one.problem.C)
        return setup._replace(problems=[replace(one, problem=costly)])


class TwiceTheCost(SquaredLoss):
    """Minimises another objective than it says."""

    factor = 2.0


@pytest.mark.parametrize("loss", [Squared(), lambda estimator: Squared()], ids=["loss", "function"])
def test_an_objective_without_a_parameter_loss_is_recomputed(loss):
    check_mkl_estimator(SquaredLoss(), loss=loss)
    with pytest.raises(AssertionError, match="contract, objective and gap are those of their definition: "):
        check_mkl_estimator(TwiceTheCost(), loss=loss)


@pytest.mark.parametrize(
    ("cls", "title"),
    [
        (CountsWeightsTwice, "weights equal repeats"),
        (Silent, "the gap is within the tolerance or there is a warning"),
        (Shifted, "predictions are the weighted sum of kernels"),
    ],
)
def test_a_mistake_is_found_and_named(cls, title):
    with pytest.raises(AssertionError, match=f"^{cls.__name__}.* breaks the contract, {title}: "):
        check_mkl_estimator(cls())


# some checks have nothing to learn from: the labels are noise, or cost next to nothing
@pytest.mark.filterwarnings("ignore:every parameter of ProductRBF was driven to 0")
@parametrize_with_checks([model for model in DEFAULTS if type(model).__name__ not in TARGETS])
def test_check_estimator(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize("estimator", OTHERS, ids=repr)
def test_check_estimator_in_other_configurations(estimator):
    results = check_estimator(estimator, on_skip=None)
    assert {result["status"] for result in results} <= {"passed", "skipped"}
