"""Empirical Bayes estimators: against scikit-learn's Gaussian processes, intervals, probabilities."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.model_selection import cross_val_score

import kernelweave as kw
from kernelweave.gram import Predictor
from kernelweave.kernels import RBF, FunctionKernel, Linear, Precomputed, per_feature

PAIR = [Linear(), RBF("weighted")]


def views(n: int, n_new: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A draw of the model: two Gaussian processes of one feature each, a level of 3, noise 0.3."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3.0, 3.0, size=(n + n_new, 2))
    K = rbf_kernel(X[:, :1], gamma=1.0) + 0.5 * rbf_kernel(X[:, 1:], gamma=1.0)
    values, vectors = np.linalg.eigh(K)
    f = vectors @ (np.sqrt(np.maximum(values, 0.0)) * rng.normal(size=len(X)))
    return X, 3.0 + f + 0.3 * rng.normal(size=len(X))


VIEWS = [RBF(gamma=1.0, columns=[0]), RBF(gamma=1.0, columns=[1])]


# -- regression -----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # weights of 0 at their bound
@pytest.mark.parametrize("seed", range(3))
def test_the_evidence_is_that_of_scikit_learn(seed):
    """The same optimum as L-BFGS on the same weighted sum of kernels and white noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=60)
    scales = (0.5, 1.0, 3.0)
    parts = [gp.ConstantKernel(1.0, (1e-9, 1e6)) * gp.RBF(scale, "fixed") for scale in scales]
    total = parts[0] + parts[1] + parts[2] + gp.WhiteKernel(0.5, (1e-9, 1e3))
    theirs = GaussianProcessRegressor(total, alpha=0.0, n_restarts_optimizer=5, random_state=0).fit(X, y)
    ours = kw.EmpiricalBayesRegressor(
        [RBF(gamma=0.5 / scale**2) for scale in scales], normalize=None, fit_intercept=False, tol=1e-7
    ).fit(X, y)
    assert ours.log_marginal_likelihood_ == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-4)
    X_new = rng.normal(size=(20, 3))
    for mine, other in zip(
        ours.predict(X_new, return_std=True), theirs.predict(X_new, return_std=True), strict=True
    ):
        np.testing.assert_allclose(mine, other, rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("seed", range(3))
def test_the_informative_kernels_are_found(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 20))
    y = np.sin(2.0 * X[:, 3]) + X[:, 11] + 0.3 * rng.normal(size=200)
    reg = kw.EmpiricalBayesRegressor(per_feature(RBF())).fit(X, y)
    share = reg.weights_ / reg.weights_.sum()
    assert (share[[3, 11]] > 0.1).all()
    assert (np.delete(share, [3, 11]) < 0.01).all()
    assert (reg.weights_ == 0).sum() >= 9
    assert 0.06 < reg.noise_ < 0.13


@pytest.mark.slow
def test_intervals_cover():
    coverage = []
    for seed in range(3):
        X, y = views(150, 1500, seed)
        reg = kw.EmpiricalBayesRegressor([*VIEWS, RBF(gamma=0.5)], normalize=None).fit(X[:150], y[:150])
        mean, std = reg.predict(X[150:], return_std=True)
        coverage.append(np.mean(np.abs(y[150:] - mean) <= 1.96 * std))
    assert all(0.92 <= share <= 0.98 for share in coverage), coverage


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("normalize", [None, "variance", "spherical", "trace", "center"])
def test_predictions_are_those_of_the_gaussian_process(normalize, fit_intercept, regression):
    """Means and variances from their textbook formulas, with a wide prior in place of a flat one."""
    X, y, X_new, _ = regression
    kernels = [Linear(), RBF(gamma=0.3)]
    reg = kw.EmpiricalBayesRegressor(kernels, normalize=normalize, fit_intercept=fit_intercept).fit(X, y)
    n, wide = len(X), 1e4 * fit_intercept
    K, cross, prior = wide, wide, wide
    for weight, k in zip(
        reg.weights_, (linear_kernel, lambda A, B: rbf_kernel(A, B, gamma=0.3)), strict=True
    ):
        raw, diag = k(X_new, X), k(X_new, X_new).diagonal()
        rule = kw.kernels.resolve_normalization(normalize).fit(k(X, X))
        K = K + weight * rule.scale_ * rule.train(k(X, X))
        cross = cross + weight * rule.scale_ * rule.cross(raw, diag)
        prior = prior + weight * rule.scale_ * rule.diag(diag, raw)
    inverse = np.linalg.inv(K + reg.noise_ * np.eye(n))
    mean, std = reg.predict(X_new, return_std=True, include_noise=False)
    np.testing.assert_allclose(mean, cross @ inverse @ y, atol=1e-3)
    np.testing.assert_allclose(std**2, prior - ((cross @ inverse) * cross).sum(axis=1), atol=2e-3)
    noisy = reg.predict(X_new, return_std=True)[1]
    np.testing.assert_allclose(noisy**2, std**2 + reg.noise_)


def test_a_weight_counts_equal_samples(regression, rng):
    X, y, X_new, _ = regression
    counts = rng.integers(0, 4, size=len(y))
    rows = rng.permutation(np.repeat(np.arange(len(y)), counts))
    weighted = kw.EmpiricalBayesRegressor(PAIR).fit(X, y, sample_weight=counts)
    repeated = kw.EmpiricalBayesRegressor(PAIR).fit(X[rows], y[rows])
    np.testing.assert_allclose(weighted.weights_, repeated.weights_, rtol=1e-6)
    assert weighted.log_marginal_likelihood_ == pytest.approx(repeated.log_marginal_likelihood_)
    np.testing.assert_allclose(
        weighted.predict(X_new, return_std=True), repeated.predict(X_new, return_std=True), rtol=1e-6
    )
    total = np.bincount(rows, repeated.dual_coef_, minlength=len(y))
    np.testing.assert_allclose(total, weighted.dual_coef_, atol=1e-6)


def test_a_sample_of_less_weight_has_more_noise():
    X, y = views(150, 0)
    spoiled = np.arange(150) % 3 == 0
    y = y + spoiled * 3.0 * np.random.default_rng(1).normal(size=150)
    weight = np.where(spoiled, 0.01, 1.0)
    reg = kw.EmpiricalBayesRegressor(VIEWS, normalize=None)
    assert reg.fit(X, y, sample_weight=weight).noise_ == pytest.approx(0.09, rel=0.4)
    assert reg.fit(X, y).noise_ > 1.0


def test_several_outputs(regression):
    X, y, X_new, _ = regression
    Y = np.column_stack([y, np.cos(X[:, 2]), y])
    shared = kw.EmpiricalBayesRegressor(PAIR).fit(X, Y)
    assert shared.weights_.shape == (2,)
    assert np.ndim(shared.noise_) == np.ndim(shared.log_marginal_likelihood_) == 0
    mean, std = shared.predict(X_new, return_std=True)
    assert mean.shape == std.shape == (30, 3)
    np.testing.assert_allclose(mean[:, 0], mean[:, 2])
    own = kw.EmpiricalBayesRegressor(PAIR, multioutput="independent").fit(X, Y)
    alone = kw.EmpiricalBayesRegressor(PAIR).fit(X, y)
    assert own.weights_.shape == (3, 2)
    assert own.noise_.shape == own.stationarity_.shape == (3,)
    np.testing.assert_allclose(own.predict(X_new)[:, 2], alone.predict(X_new))
    np.testing.assert_allclose(own.predict(X_new, return_std=True)[1][:, 0], alone.predict(X_new, True)[1])


def test_known_noise(regression):
    reg = kw.EmpiricalBayesRegressor(PAIR, noise=0.4).fit(regression.X, regression.y)
    assert reg.noise_ == 0.4


def test_a_hyper_prior_keeps_more_kernels(regression):
    X, y = regression.X, regression.y
    plain = kw.EmpiricalBayesRegressor(per_feature(RBF())).fit(X, y)
    kept = clone(plain).set_params(hyperprior=lambda d: float((d - 2.0 * np.log(d)).sum())).fit(X, y)
    assert np.count_nonzero(plain.weights_) < 4
    assert np.count_nonzero(kept.weights_) == 4
    assert kept.log_marginal_likelihood_ < plain.log_marginal_likelihood_


def test_only_live_kernels_are_evaluated(regression):
    X, y, X_new, _ = regression
    calls = []

    def useless(A, B):
        calls.append(len(A))
        return np.equal.outer(A[:, 3], B[:, 3]).astype(float)

    # noise at the training samples, like the learned one
    reg = kw.EmpiricalBayesRegressor([Linear(), RBF(), FunctionKernel(useless)], noise=2.0).fit(X, y)
    assert reg.weights_[2] == 0.0
    calls.clear()
    reg.predict(X_new, return_std=True)
    assert not calls


def test_blocks_of_rows_do_not_matter(regression, monkeypatch):
    reg = kw.EmpiricalBayesRegressor(PAIR, normalize="center").fit(regression.X, regression.y)
    whole = reg.predict(regression.X_new, return_std=True)
    monkeypatch.setattr(Predictor, "block_bytes", 8 * 60 * 3 * 7)
    np.testing.assert_allclose(reg.predict(regression.X_new, return_std=True), whole)


def test_precomputed_kernels(regression):
    X, y, X_new, _ = regression
    train = np.dstack([linear_kernel(X), rbf_kernel(X, gamma=0.3)])
    new = np.dstack([linear_kernel(X_new, X), rbf_kernel(X_new, X, gamma=0.3)])
    ours = kw.EmpiricalBayesRegressor("precomputed").fit(train, y)
    same = kw.EmpiricalBayesRegressor([Linear(), RBF(gamma=0.3)]).fit(X, y)
    np.testing.assert_allclose(ours.predict(new), same.predict(X_new))
    with pytest.raises(ValueError, match="Precomputed kernels by sample index"):
        ours.predict(new, return_std=True)
    everything = np.vstack([X, X_new])
    by_index = kw.EmpiricalBayesRegressor(
        [Precomputed(linear_kernel(everything)), Precomputed(rbf_kernel(everything, gamma=0.3))]
    ).fit(np.arange(len(X))[:, None], y)
    np.testing.assert_allclose(
        by_index.predict(np.arange(len(X), len(everything))[:, None], return_std=True),
        same.predict(X_new, return_std=True),
    )
    assert np.isfinite(cross_val_score(kw.EmpiricalBayesRegressor("precomputed"), train, y, cv=3)).all()


def test_fitted_attributes(regression):
    reg = kw.EmpiricalBayesRegressor({"line": Linear(), "curve": RBF()}).fit(regression.X, regression.y)
    assert reg.kernel_names_ == ["line", "curve"]
    assert reg.stationarity_ <= reg.tol
    assert reg.n_iter_ == len(reg.history_["log_evidence"]) - 1
    assert reg.history_["log_evidence"][-1] == reg.log_marginal_likelihood_
    assert (np.diff(reg.history_["log_evidence"]) >= 0).all()
    np.testing.assert_allclose(
        reg.norms_[0] ** 2,
        (reg.weights_[0] * reg.model_.terms[0].rule.scale_) ** 2
        / reg.model_.terms[0].rule.scale_
        * (reg.dual_coef_ @ linear_kernel(regression.X) @ reg.dual_coef_),
    )
    frame = reg.weights_frame()
    assert isinstance(frame, pd.DataFrame)
    assert list(frame["kernel"]) == ["line", "curve"]
    assert "Kernel weights" in reg._repr_html_()


def test_progress_is_printed(regression, capsys):
    kw.EmpiricalBayesRegressor(PAIR, verbose=1).fit(regression.X, regression.y)
    assert "relative slope" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"noise": -1.0}, ValueError, "noise=-1.0 must be a positive number"),
        ({"hyperprior": "gamma"}, ValueError, "expected a function h"),
        ({"multioutput": "own"}, ValueError, "'shared' or 'independent'"),
        ({"memory_limit": "10KB"}, MemoryError, "memory_limit allows"),
        ({"gram": "disk"}, ValueError, "not a Gram engine"),
    ],
)
def test_bad_parameters_leave_nothing_behind(parameters, error, message, regression):
    reg = kw.EmpiricalBayesRegressor(PAIR, **parameters)
    with pytest.raises(error, match=message):
        reg.fit(regression.X, regression.y)
    assert not hasattr(reg, "weights_")


# -- classification -------------------------------------------------------------------------------


def labels(n: int, n_new: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Labels drawn from a logistic model of a smooth function."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n + n_new, 2))
    f = 2.0 * np.sin(1.5 * X[:, 0]) + X[:, 1] + 0.5
    return X, (rng.uniform(size=n + n_new) < 1.0 / (1.0 + np.exp(-f))).astype(int)


def brier(probability: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean((probability[:, 1] - y) ** 2))


def test_probabilities_are_as_good_as_those_of_scikit_learn():
    X, y = labels(150, 1500)
    theirs = GaussianProcessClassifier(gp.ConstantKernel() * gp.RBF(1.0, "fixed")).fit(X[:150], y[:150])
    for fit_intercept in (False, True):
        ours = kw.EmpiricalBayesClassifier(RBF(gamma=0.5), normalize=None, fit_intercept=fit_intercept)
        ours.fit(X[:150], y[:150])
        score = brier(ours.predict_proba(X[150:]), y[150:])
        assert score <= 1.05 * brier(theirs.predict_proba(X[150:]), y[150:])


def test_laplace_optimum_is_that_of_scikit_learn():
    X, y = labels(100, 50)
    theirs = GaussianProcessClassifier(gp.ConstantKernel() * gp.RBF(1.0, "fixed")).fit(X[:100], y[:100])
    ours = kw.EmpiricalBayesClassifier(RBF(gamma=0.5), normalize=None, fit_intercept=False, tol=1e-6)
    ours.fit(X[:100], y[:100])
    assert ours.log_marginal_likelihood_ == pytest.approx(theirs.log_marginal_likelihood_value_, rel=1e-6)
    # they integrate the sigmoid, we moderate it
    np.testing.assert_allclose(ours.predict_proba(X[100:]), theirs.predict_proba(X[100:]), atol=0.02)


@pytest.mark.parametrize("method", ["laplace", "regression"])
def test_probabilities_are_calibrated(method):
    X, y = labels(250, 2000, seed=1)
    clf = kw.EmpiricalBayesClassifier([Linear(), RBF(gamma=0.5)], method=method).fit(X[:250], y[:250])
    positive = clf.predict_proba(X[250:])[:, 1]
    bins = np.digitize(positive, [0.2, 0.4, 0.6, 0.8])
    gaps = [abs(positive[bins == b].mean() - y[250:][bins == b].mean()) for b in range(5)]
    shares = np.bincount(bins, minlength=5) / len(bins)
    assert shares @ np.array(gaps) < 0.06


def test_the_informative_kernels_of_a_classification_are_found(rng):
    X = rng.normal(size=(250, 12))
    y = X[:, 2] + np.sin(2.0 * X[:, 7]) > 0
    clf = kw.EmpiricalBayesClassifier(per_feature(RBF())).fit(X, y)
    share = clf.weights_ / clf.weights_.sum()
    assert set(np.argsort(-share)[:2]) == {2, 7}
    assert np.delete(share, [2, 7]).max() < 0.05


@pytest.mark.parametrize("method", ["laplace", "regression"])
def test_several_classes(method, flowers):
    clf = kw.EmpiricalBayesClassifier(PAIR, method=method).fit(flowers.X, flowers.y)
    assert clf.weights_.shape == (3, 2)
    assert clf.log_marginal_likelihood_.shape == (3,)
    assert hasattr(clf, "noise_") == (method == "regression")
    probability = clf.predict_proba(flowers.X_new)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    predicted = clf.predict(flowers.X_new)
    assert (clf.classes_[probability.argmax(axis=1)] == predicted).all()
    assert (clf.classes_[clf.decision_function(flowers.X_new).argmax(axis=1)] == predicted).all()
    assert np.mean(predicted == flowers.y_new) > 0.93
    np.testing.assert_allclose(np.exp(clf.predict_log_proba(flowers.X_new)), probability, atol=1e-200)


def test_kernels_are_computed_once_for_all_classes(flowers):
    calls = []

    def counted(A, B):
        calls.append(1)
        return A @ B.T

    kw.EmpiricalBayesClassifier([FunctionKernel(counted), RBF()]).fit(flowers.X, flowers.y)
    assert len(calls) == 1


def test_regression_on_labels_is_the_regressor(binary):
    X, y, X_new, _ = binary
    clf = kw.EmpiricalBayesClassifier(PAIR, method="regression").fit(X, y)
    reg = kw.EmpiricalBayesRegressor(PAIR).fit(X, 2.0 * y - 1.0)
    np.testing.assert_allclose(clf.weights_, reg.weights_)
    mean, std = reg.predict(X_new, return_std=True)
    np.testing.assert_allclose(clf.decision_function(X_new), mean / std)
    assert (clf.predict(X_new) == (mean > 0)).all()


def test_moderation_needs_variances(binary):
    X, y, X_new, _ = binary
    clf = kw.EmpiricalBayesClassifier("precomputed").fit(rbf_kernel(X), y)
    same = kw.EmpiricalBayesClassifier(RBF(gamma=0.25)).fit(X, y)
    assert (clf.predict(rbf_kernel(X_new, X)) == same.predict(X_new)).all()
    assert (np.abs(clf.decision_function(rbf_kernel(X_new, X))) > np.abs(same.decision_function(X_new))).all()
    with pytest.raises(ValueError, match="Precomputed kernels by sample index"):
        clf.predict_proba(rbf_kernel(X_new, X))


def test_bad_classifiers(binary):
    with pytest.raises(ValueError, match="'laplace' or 'regression'"):
        kw.EmpiricalBayesClassifier(method="ep").fit(binary.X, binary.y)
    with pytest.raises(ValueError, match="1 class"):
        kw.EmpiricalBayesClassifier().fit(binary.X, np.ones(60))


# -- starts and units -----------------------------------------------------------------------------


def test_starts_are_told_for_every_model(flowers, regression):
    clf = kw.EmpiricalBayesClassifier("rbf").fit(flowers.X, flowers.y)
    assert len(clf.starts_) == 3
    assert all(sum(starts["chosen"]) == 1 for starts in clf.starts_)
    reg = kw.EmpiricalBayesRegressor("rbf").fit(regression.X, regression.y)
    assert reg.starts_["log_evidence"][reg.starts_["chosen"].index(True)] == reg.log_marginal_likelihood_
    known = kw.EmpiricalBayesRegressor("rbf", noise=0.3).fit(regression.X, regression.y)
    assert set(known.starts_["noise"]) == {0.3}


@pytest.mark.parametrize("factor", [1e-9, 1e9])
def test_predictions_follow_the_units_of_the_target(regression, factor):
    kernels = per_feature(RBF())
    plain = kw.EmpiricalBayesRegressor(kernels).fit(regression.X, regression.y)
    scaled = kw.EmpiricalBayesRegressor(kernels).fit(regression.X, factor * regression.y)
    for one, other in zip(
        plain.predict(regression.X_new, return_std=True),
        scaled.predict(regression.X_new, return_std=True),
        strict=True,
    ):
        np.testing.assert_allclose(other, factor * one, rtol=1e-6, atol=1e-8 * factor)
    assert scaled.stationarity_ == pytest.approx(plain.stationarity_, rel=1e-4)


def corn(data_folder, column):
    with np.load(data_folder / "corn_nir.npz") as arrays:
        X, y = arrays["X_m5"].astype(float), arrays["Y"][:, column].astype(float)
    bands = [Linear(columns=list(range(start, start + 35))) for start in range(0, 700, 35)]
    return bands, X, y, np.arange(len(y)) % 4 != 0


@pytest.mark.parametrize("column", range(4))
def test_spectra_of_corn_are_not_taken_for_noise(data_folder, column):
    """Bands are nearly collinear, and what they say of starch lies in directions of small variance."""
    bands, X, y, train = corn(data_folder, column)
    reg = kw.EmpiricalBayesRegressor(bands).fit(X[train], y[train])
    assert reg.score(X[~train], y[~train]) > 0.95
    assert reg.stationarity_ <= reg.tol
    assert max(reg.starts_["log_evidence"]) == reg.log_marginal_likelihood_


def test_classes_of_corn_are_not_taken_for_noise(data_folder):
    bands, X, y, train = corn(data_folder, 3)
    labels = y > np.median(y)
    clf = kw.EmpiricalBayesClassifier(bands).fit(X[train], labels[train])
    assert clf.score(X[~train], labels[~train]) > 0.8


def test_precomputed_matrices_of_samples_without_weight(regression):
    """New matrices have the columns of all samples, also of those that were left out."""
    K, K_new = RBF(0.3)(regression.X), RBF(0.3)(regression.X_new, regression.X)
    weight = np.where(np.arange(60) % 4 == 0, 0.0, 1.0)
    kept = np.flatnonzero(weight)
    left_out = kw.EmpiricalBayesRegressor("precomputed").fit(K[:, :, None], regression.y, weight)
    alone = kw.EmpiricalBayesRegressor("precomputed").fit(
        K[np.ix_(kept, kept)][:, :, None], regression.y[kept]
    )
    np.testing.assert_allclose(
        left_out.predict(K_new[:, :, None]), alone.predict(K_new[:, kept][:, :, None]), atol=1e-8
    )
