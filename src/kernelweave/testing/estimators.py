"""What every estimator over several kernels promises."""

from __future__ import annotations

import pickle
import tempfile
import warnings
from pathlib import Path
from typing import Any, NamedTuple
from unittest import SkipTest

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier, is_outlier_detector
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import has_fit_parameter

from .._typing import FloatArray
from ..kernels import RBF, Linear, Polynomial
from ..losses import LOSSES, Loss
from ..persistence import ModelFileError, load_model, save_model
from ..regularizers import REGULARIZERS, Regularizer
from ..solvers import Problem
from ._contract import Contract, draws, expect, expect_clone
from .solvers import dual_loss, gap_scale

contract = Contract()

KERNELS = (Linear(), RBF(gamma=0.05), RBF(gamma=0.3), Polynomial(degree=2))


class EstimatorCase(NamedTuple):
    """An estimator, not fitted, with training data and new samples."""

    estimator: Any
    X: FloatArray
    y: Any
    X_new: FloatArray
    loss: Any = None


def check_mkl_estimator(
    estimator: Any, X: Any = None, y: Any = None, X_new: Any = None, loss: Any = None
) -> None:
    """Check an estimator over several kernels: what it learns is what its parameters and kernels say.

    Its objective and duality gap are recomputed from public attributes, and so are its predictions,
    f(x) = sum_m d_m sum_i alpha_i k_m(x, x_i) + b. The order of kernels and samples does not matter, a sample
    of weight 2 counts as two, Gram matrices give the same model as the kernels they come from, a fit that
    stops early warns, one that fails changes nothing, and copies, pickled or from a file, predict the same.
    What does not apply to an estimator (`sample_weight`, `kernels`, `dual_gap_`, ...) is left out.

    Objective and gap can be recomputed only where the loss is known. **For an estimator without a parameter
    `loss` they are not checked unless `loss` is passed here**, and an estimator that minimises something
    else, such as 2 C times its loss, goes unnoticed. Methods other than `fit` and `predict` are not checked
    either.

    What every estimator of scikit-learn has to satisfy is left to
    ``sklearn.utils.estimator_checks.check_estimator``.

    Parameters
    ----------
    estimator : estimator
        With its parameters, not fitted; its kernels are replaced for properties that need particular ones.
    X, y, X_new : ndarray, optional
        Training data, and new samples; by default a few dozen samples with four features.
    loss : Loss or callable, optional
        The loss of an estimator that has no parameter of this name, or a function of the estimator that
        returns it.

    Raises
    ------
    AssertionError
        Names the property that does not hold, and the estimator.

    Examples
    --------
    >>> import kernelweave as kw
    >>> from kernelweave.testing import check_mkl_estimator
    >>> check_mkl_estimator(kw.MKLRegressor(regularizer="uniform"))
    """
    hint = (
        "The data were drawn: pass X, y and X_new of the kind that the estimator takes." if X is None else ""
    )
    contract.check(estimator, estimator_case(estimator, X, y, X_new, loss), hint=hint)


def estimator_case(
    estimator: Any, X: Any = None, y: Any = None, X_new: Any = None, loss: Any = None
) -> EstimatorCase:
    """The estimator with data: given, or drawn samples of two overlapping classes or with noisy targets."""
    if X is None:
        rng = draws()
        X = rng.normal(size=(60, 4))
        X, X_new = X[:40], X[40:]
        score = X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.5 * rng.normal(size=len(X))
        y = np.where(score > 0, "yes", "no") if is_classifier(estimator) else score
        y = None if is_outlier_detector(estimator) else y
    return EstimatorCase(estimator, X, y, X if X_new is None else X_new, loss)


# -- fitting and asking -------------------------------------------------------------------------


def _fit(case: EstimatorCase, rows: Any = None, X: Any = None, fit: Any = None, **params: Any) -> Any:
    """A copy with these parameters, fitted on the data, or on some of their rows."""
    model = clone(case.estimator).set_params(**params)
    rows = np.arange(len(case.X)) if rows is None else rows
    y = () if case.y is None else (case.y[rows],)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(case.X[rows] if X is None else X, *y, **(fit or {}))


def _tight(case: EstimatorCase, **params: Any) -> dict[str, Any]:
    """Parameters of an exact fit with given kernels, where the estimator has such parameters."""
    known = case.estimator.get_params(deep=False)
    if "kernels" not in known:
        raise SkipTest(f"{type(case.estimator).__name__} has no parameter `kernels`")
    if "regularizer" in known or "regularizers" in known:
        params = {"tol": 1e-8, "max_iter": 1000, **params}
    if "approximation" in known:
        params = {"approximation": None, **params}
    return {"kernels": list(KERNELS), **params}


def _values(model: Any, X: Any) -> FloatArray:
    """The values that the estimator predicts, before they become labels."""
    ask = model.decision_function if hasattr(model, "decision_function") else model.predict
    return np.asarray(ask(X))


def _grams(kernels: Any, X: FloatArray, Z: FloatArray) -> FloatArray:
    """Gram matrices between the rows of Z and of X, shape (n_z, n_x, M)."""
    return np.dstack([kernel.fit(X)(Z, X) for kernel in map(clone, kernels)])


def _targets(case: EstimatorCase, model: Any) -> FloatArray:
    """The targets of the loss, shape (n, c), or (n, 1, k) where a sample has k numbers."""
    if case.y is None:
        return np.ones((len(case.X), 1))
    if not is_classifier(model):
        names = np.asarray(case.y).dtype.names
        y = case.y if names is None else np.column_stack([case.y[name] for name in ("time", "event")])
        return np.asarray(y, dtype=float)[:, None]
    positive = model.classes_ if len(model.classes_) > 2 else model.classes_[1:]
    return np.where(case.y[:, None] == positive, 1.0, -1.0)


def _alpha(model: Any) -> FloatArray:
    """Dual variables of one model, shape (n, c)."""
    if not hasattr(model, "dual_coef_") or np.ndim(model.weights_) > 1:
        raise SkipTest(f"{type(model).__name__} has no `dual_coef_` of one model")
    return np.atleast_2d(model.dual_coef_).T


# -- properties ---------------------------------------------------------------------------------


@contract.promise
def clone_and_parameters(case: EstimatorCase) -> None:
    """Clone, get_params and repr agree, and a fit changes no parameter."""
    expect_clone(case.estimator)
    fitted = _fit(case)
    expect(repr(fitted) == repr(case.estimator), f"after a fit {fitted!r}")


@contract.promise
def one_weight_per_kernel(case: EstimatorCase) -> None:
    """weights_ has an entry >= 0 for every name of kernel_names_, all different."""
    model = _fit(case, **_tight(case))
    names = model.kernel_names_
    expect(len(names) == len(KERNELS) == len(set(names)), f"kernel_names_ {names}")
    expect(np.shape(model.weights_)[-1] == len(KERNELS), f"weights_ of shape {np.shape(model.weights_)}")
    expect(np.isfinite(model.weights_) & (np.asarray(model.weights_) >= 0), f"weights_ {model.weights_}")


@contract.promise
def the_gap_is_within_the_tolerance_or_there_is_a_warning(case: EstimatorCase) -> None:
    """dual_gap_ <= tol, or stationarity_ where there is no gap, unless there was a ConvergenceWarning."""
    for params in ({}, {"tol": 1e-12, "max_iter": 1}):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = clone(case.estimator).set_params(**params)
            model.fit(case.X, *(() if case.y is None else (case.y,)))
        if not hasattr(model, "dual_gap_"):
            raise SkipTest(f"{type(model).__name__} has no `dual_gap_`")
        gap = np.where(np.isfinite(model.dual_gap_), model.dual_gap_, getattr(model, "stationarity_", np.inf))
        warned = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
        expect(warned or (gap <= model.tol).all(), f"a gap of {gap} and no warning")


@contract.promise
def objective_and_gap_are_those_of_their_definition(case: EstimatorCase) -> None:
    """P = C sum_i V(y_i, f_i) + Omega(n) and D = -C sum_i V*(y_i, -alpha_i / C) - Omega*(r), tol P apart."""
    params = case.estimator.get_params(deep=False)
    named = params.get("loss", case.loss(case.estimator) if callable(case.loss) else case.loss)
    if named is None or not {"kernels", "regularizer", "C"} <= set(params):
        raise SkipTest(f"{type(case.estimator).__name__} does not name its objective")
    regularizer = REGULARIZERS.resolve(params["regularizer"], Regularizer)
    if not regularizer.convex:
        raise SkipTest(f"{regularizer} has no duality gap")
    plain = {"class_weight": None} if "class_weight" in params else {}
    model = _fit(case, **_tight(case, normalize=None, **plain))
    loss: Any = LOSSES.resolve(named, Loss)
    alpha, b = _alpha(model), np.atleast_1d(model.intercept_)
    if alpha.shape[1] > 1 and params.get("multiclass") == "joint":
        loss = loss.multiclass()
    C = params["C"] or 1.0 / (model.nu * len(case.X))
    problem = Problem(_targets(case, model), loss, np.full((len(case.X), 1), C))
    Ks = np.moveaxis(_grams(KERNELS, case.X, case.X), 2, 0)
    r = np.sqrt(np.maximum(np.einsum("ic,mij,jc->m", alpha, Ks, alpha), 0.0))
    f = np.einsum("m,mij,jc->ic", model.weights_, Ks, alpha)
    primal = problem.primal_loss(f, b) + regularizer.penalty(model.weights_ * r)
    if not loss.separable:
        alpha = problem.alpha_of(f + b)
        r = np.sqrt(np.maximum(np.einsum("ic,mij,jc->m", alpha, Ks, alpha), 0.0))
    dual = dual_loss(problem, f + b, alpha) - regularizer.conjugate(r)
    assert_allclose(model.objective_, primal, rtol=1e-7, atol=1e-12)
    gap = (primal - dual) / gap_scale(problem, primal, dual)
    expect(-1e-10 <= gap <= 2.0 * model.tol, f"P = {primal}, D = {dual}")
    expect(not getattr(model, "fit_intercept", True) or problem.has_right_sum(alpha), "alpha is not feasible")


@contract.promise
def predictions_are_the_weighted_sum_of_kernels(case: EstimatorCase) -> None:
    """f(x) = sum_m d_m sum_i alpha_i k_m(x, x_i) + b, from public attributes."""
    model = _fit(case, **_tight(case, normalize=None))
    alpha, grams = _alpha(model), _grams(KERNELS, case.X, case.X_new)
    sums = np.einsum("m,nim,ic->nc", model.weights_, grams, alpha)
    values = model.model_(case.X_new) if hasattr(model, "model_") else _values(model, case.X_new)[:, None]
    assert_allclose(values, sums + model.intercept_, rtol=1e-6, atol=1e-8)
    found = model.predict(case.X_new)
    if is_classifier(model):
        largest = values.argmax(axis=1) if values.shape[1] > 1 else (values[:, 0] > 0).astype(int)
        assert_array_equal(found, model.classes_[largest])
    elif not is_outlier_detector(model):
        assert_allclose(found, values[:, 0], rtol=1e-12)


@contract.promise
def permuting_kernels_permutes_weights(case: EstimatorCase) -> None:
    """Names and weights move with the kernels, and predictions stay."""
    order = [2, 0, 3, 1]
    one, two = (_fit(case, **_tight(case, kernels=k)) for k in (list(KERNELS), [KERNELS[m] for m in order]))
    expect([one.kernel_names_[m] for m in order] == two.kernel_names_)
    assert_allclose(np.asarray(one.weights_)[..., order], two.weights_, atol=1e-3)
    assert_allclose(_values(one, case.X_new), _values(two, case.X_new), atol=2e-3)


@contract.promise
def permuting_samples_changes_nothing(case: EstimatorCase) -> None:
    """The same samples in another order give the same predictions."""
    if "cv" in case.estimator.get_params(deep=False):
        raise SkipTest("folds follow the order of the samples")
    order = draws().permutation(len(case.X))
    one, two = (_fit(case, rows, **_tight(case)) for rows in (None, order))
    assert_allclose(_values(one, case.X_new), _values(two, case.X_new), atol=2e-3)


@contract.promise
def the_scale_of_a_kernel_does_not_matter(case: EstimatorCase) -> None:
    """Under normalize="variance", 10 k gives the model of k."""
    scaled = [KERNELS[0] * 10.0, *KERNELS[1:]]
    options = [_tight(case, kernels=kernels, normalize="variance") for kernels in (list(KERNELS), scaled)]
    one, ten = (_fit(case, **params) for params in options)
    assert_allclose(one.weights_, ten.weights_, atol=1e-3)
    assert_allclose(_values(one, case.X_new), _values(ten, case.X_new), atol=2e-3)


@contract.promise
def weights_equal_repeats(case: EstimatorCase) -> None:
    """A sample of weight w counts as w equal samples; one of weight 0 does not count."""
    if not has_fit_parameter(case.estimator, "sample_weight"):
        raise SkipTest(f"{type(case.estimator).__name__} takes no sample_weight")
    if "cv" in case.estimator.get_params(deep=False):
        raise SkipTest("folds follow the number of samples")
    weight = np.arange(len(case.X)) % 3
    weighted = _fit(case, fit={"sample_weight": weight}, **_tight(case))
    repeated = _fit(case, np.repeat(np.arange(len(case.X)), weight), **_tight(case))
    assert_allclose(weighted.weights_, repeated.weights_, atol=1e-3)
    assert_allclose(_values(weighted, case.X_new), _values(repeated, case.X_new), atol=2e-3)


@contract.promise
def matrices_give_the_model_of_the_kernels(case: EstimatorCase) -> None:
    """kernels="precomputed" with the Gram matrices of kernels gives the fit with these kernels."""
    spherical = getattr(case.estimator, "normalize", None) == "spherical"  # needs k(x, x) of new samples
    rule = {"normalize": "trace"} if spherical else {}
    on_data = _fit(case, **_tight(case, **rule))
    train, new = (_grams(KERNELS, case.X, rows) for rows in (case.X, case.X_new))
    given = _fit(case, X=train, **_tight(case, kernels="precomputed", **rule))
    assert_allclose(given.weights_, on_data.weights_, atol=1e-4)
    assert_allclose(getattr(given, "dual_coef_", 0.0), getattr(on_data, "dual_coef_", 0.0), atol=1e-4)
    ours, theirs = given.predict(new), on_data.predict(case.X_new)
    assert_array_equal(ours, theirs) if is_classifier(given) else assert_allclose(ours, theirs, atol=1e-4)


@contract.promise
def a_fit_can_be_repeated(case: EstimatorCase) -> None:
    """The same data give the same numbers, to the last bit, after a fit on other data too."""
    one, two = _fit(case), _fit(case, np.arange(0, len(case.X), 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        two.fit(case.X, *(() if case.y is None else (case.y,)))
    assert_array_equal(_values(one, case.X_new), _values(two, case.X_new))


@contract.promise
def input_is_not_modified(case: EstimatorCase) -> None:
    """Neither a fit nor a prediction changes X and y."""
    before = [np.copy(part) for part in (case.X, case.X_new)] + ([] if case.y is None else [np.copy(case.y)])
    _values(_fit(case), case.X_new)
    for part, copy in zip((case.X, case.X_new, case.y), before, strict=False):
        assert_array_equal(part, copy)


@contract.promise
def a_fit_that_fails_changes_nothing(case: EstimatorCase) -> None:
    """After data have been refused, the model is as it was before."""
    model = _fit(case)
    before = _values(model, case.X_new)
    try:
        model.fit(np.full_like(case.X, np.nan), *(() if case.y is None else (case.y,)))
    except ValueError:
        assert_array_equal(_values(model, case.X_new), before)
    else:
        raise AssertionError("a table of NaN was accepted")


@contract.promise
def pickles(case: EstimatorCase) -> None:
    """A pickled copy predicts the same."""
    model = _fit(case)
    assert_array_equal(_values(pickle.loads(pickle.dumps(model)), case.X_new), _values(model, case.X_new))


@contract.promise
def model_files_predict_the_same(case: EstimatorCase) -> None:
    """A model that went through `save_model` and `load_model` predicts the same."""
    model = _fit(case)
    with tempfile.TemporaryDirectory() as folder:
        try:
            save_model(model, Path(folder) / "model.kw")
        except ModelFileError as error:  # classes and functions that are not kernelweave's own
            raise SkipTest(str(error)) from error
        loaded = load_model(Path(folder) / "model.kw")
    assert_array_equal(_values(loaded, case.X_new), _values(model, case.X_new))
