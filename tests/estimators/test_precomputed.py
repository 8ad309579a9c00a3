"""Gram matrices as input: an array, a KernelStack, a list, or Precomputed kernels by sample index."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.utils.metaestimators import _safe_split

import kernelweave as kw
from kernelweave.gram import DenseGram
from kernelweave.gram.dictionary import Kernels
from kernelweave.kernels import RBF, Linear, Precomputed
from kernelweave.losses import Hinge
from kernelweave.solvers import Problem, certificate
from kernelweave.solvers.growing import Foresight

ON_DATA = [Linear(), RBF(gamma=0.3)]


def as_list(K):
    return [K[:, :, m].copy() for m in range(K.shape[2])]


CONTAINERS = {
    "array": lambda K: K,
    "float32": lambda K: K.astype(np.float32),
    "Fortran order": np.asfortranarray,
    "stack": lambda K: kw.KernelStack(as_list(K)),
    "list": as_list,
    "tuple": lambda K: tuple(as_list(K)),
}


def same_model(given, on_data, atol=1e-10):
    np.testing.assert_allclose(given.weights_, on_data.weights_, atol=atol)
    np.testing.assert_allclose(given.dual_coef_, on_data.dual_coef_, atol=atol)
    np.testing.assert_allclose(given.intercept_, on_data.intercept_, atol=atol)
    np.testing.assert_allclose(given.objective_, on_data.objective_, atol=atol * 100)


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("normalize", ["variance", "trace", "dimension", "center", None], ids=str)
def test_matrices_give_the_model_of_the_kernels(binary, grams, container, normalize):
    wrap = CONTAINERS[container]
    on_data = kw.MKLClassifier(ON_DATA, normalize=normalize, tol=1e-8).fit(binary.X, binary.y)
    given = kw.MKLClassifier("precomputed", normalize=normalize, tol=1e-8).fit(wrap(grams[0]), binary.y)
    loose = 1e-2 if container == "float32" else 1e-6
    same_model(given, on_data, loose)
    np.testing.assert_allclose(
        given.decision_function(wrap(grams[1])), on_data.decision_function(binary.X_new), atol=loose
    )
    assert given.kernel_names_ == ["kernel 0", "kernel 1"]


def test_one_matrix_is_one_kernel(binary, grams):
    K = grams[0][:, :, 1]
    flat = kw.MKLClassifier("precomputed").fit(K, binary.y)
    deep = kw.MKLClassifier("precomputed").fit(K[:, :, None], binary.y)
    assert flat.weights_.shape == (1,)
    np.testing.assert_array_equal(flat.dual_coef_, deep.dual_coef_)
    np.testing.assert_array_equal(flat.predict(grams[1][:, :, 1]), deep.predict(grams[1][:, :, 1:]))


def test_names_of_a_stack_are_kernel_names(binary, grams):
    stack = kw.KernelStack(as_list(grams[0]), names=["linear", "gauss"])
    assert kw.MKLClassifier("precomputed").fit(stack, binary.y).kernel_names_ == ["linear", "gauss"]


@pytest.mark.parametrize("normalize", ["variance", "spherical", "trace", "center", None], ids=str)
def test_precomputed_kernels_by_sample_index(binary, normalize):
    """The matrices of all samples, the data are sample numbers: training and new ones."""
    everything = np.vstack([binary.X, binary.X_new])
    kernels = [Precomputed(kernel(everything)) for kernel in ON_DATA]
    train, new = np.arange(60)[:, None], np.arange(60, 90)[:, None]
    given = kw.MKLClassifier(kernels, normalize=normalize, tol=1e-8).fit(train, binary.y)
    on_data = kw.MKLClassifier(ON_DATA, normalize=normalize, tol=1e-8).fit(binary.X, binary.y)
    same_model(given, on_data, 1e-6)
    np.testing.assert_allclose(
        given.decision_function(new), on_data.decision_function(binary.X_new), atol=1e-6
    )


def test_a_matrix_stands_for_a_precomputed_kernel(binary, grams):
    index = np.arange(60)[:, None]
    matrices = kw.MKLClassifier(as_list(grams[0])).fit(index, binary.y)
    kernels = kw.MKLClassifier([Precomputed(K) for K in as_list(grams[0])]).fit(index, binary.y)
    np.testing.assert_array_equal(matrices.dual_coef_, kernels.dual_coef_)


def test_precomputed_kernels_next_to_kernels_on_columns(binary, grams):
    """A column of sample numbers beside columns of features."""
    table = np.column_stack([np.arange(60), binary.X])
    kernels = {"given": Precomputed(grams[0][:, :, 1], columns=0), "data": Linear(columns=slice(1, 5))}
    mixed = kw.MKLClassifier(kernels, tol=1e-8).fit(table, binary.y)
    on_data = kw.MKLClassifier({"given": RBF(gamma=0.3), "data": Linear()}, tol=1e-8)
    same_model(mixed, on_data.fit(binary.X, binary.y), 1e-6)


def test_clones_share_the_matrix(grams):
    K = grams[0][:, :, 0]
    original = kw.MKLClassifier([Precomputed(K), RBF()])
    copy = clone(clone(original))
    assert copy is not original
    assert copy.kernels[0].matrix is K


def test_the_fitted_model_does_not_copy_the_matrix(binary, grams):
    K = as_list(grams[0])[0]
    kernel = Precomputed(K)
    model = kw.MKLClassifier([kernel]).fit(np.arange(60)[:, None], binary.y)
    assert model.kernels[0] is kernel
    assert kernel.matrix is K


def test_folds_of_a_stack_share_the_matrices(binary, grams):
    matrices = as_list(grams[0])
    stack = kw.KernelStack(matrices)
    model = kw.MKLClassifier("precomputed")
    for train, test in KFold(3).split(stack):
        X_train, _ = _safe_split(model, stack, binary.y, train)
        X_test, _ = _safe_split(model, stack, binary.y, test, train)
        assert X_train.shape == (40, 40, 2)
        assert X_test.shape == (20, 40, 2)
        for part in (X_train, X_test, X_train[np.ix_([0, 1], [0, 1])]):
            pairs = zip(part.matrices, matrices, strict=True)
            assert all(np.shares_memory(kept, given) for kept, given in pairs)
        np.testing.assert_array_equal(X_test.matrix(1), matrices[1][np.ix_(test, train)])


def test_a_whole_stack_is_used_in_place(grams):
    matrices = as_list(grams[0])
    stack = kw.KernelStack(matrices)
    assert all(stack.matrix(m) is matrices[m] for m in range(2))


def test_fitting_leaves_the_input_alone(binary, grams):
    K = grams[0].copy()
    matrices = as_list(K)
    before = [matrix.copy() for matrix in matrices]
    for normalize in ("variance", "spherical", "trace", "center", None):
        kw.MKLClassifier("precomputed", normalize=normalize).fit(K, binary.y)
        kw.MKLClassifier("precomputed", normalize=normalize).fit(kw.KernelStack(matrices), binary.y)
    np.testing.assert_array_equal(K, grams[0])
    np.testing.assert_array_equal(matrices, before)


def test_new_rows_come_in_the_order_of_the_fit(binary, grams):
    y, (first, second) = binary.y, as_list(grams[0])
    named = kw.KernelStack([first, second], names=["lin", "rbf"])
    model = kw.MKLClassifier("precomputed").fit(named, y)
    expected = model.decision_function(named)
    np.testing.assert_array_equal(model.decision_function([first, second]), expected)
    with pytest.raises(ValueError, match=r"X has the kernels rbf, lin.*fitted on lin, rbf.*in this order"):
        model.predict(kw.KernelStack([second, first], names=["rbf", "lin"]))
    unnamed = kw.MKLClassifier("precomputed").fit([first, second], y)
    np.testing.assert_array_equal(unnamed.decision_function(named), expected)


def test_half_precision_becomes_double(binary, grams):
    y, half = binary.y, [K.astype(np.float16) for K in as_list(grams[0])[1:]]
    model = kw.MKLClassifier("precomputed").fit(half, y)
    double = kw.MKLClassifier("precomputed").fit([K.astype(np.float64) for K in half], y)
    np.testing.assert_array_equal(model.weights_, double.weights_)


MANY_WIDTHS = tuple(np.logspace(-2.0, 1.0, 10))


def several(n_classes=2, widths=(0.02, 0.2, 2.0)):
    """Matrices of enough samples for looks at some of them."""
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=650)
    X = rng.normal(size=(650, 4)) + y[:, None]
    return [np.exp(-g * ((X[:, None] - X) ** 2).sum(axis=2)) for g in widths], y


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_first_look_reads_no_matrix_again(n_classes, monkeypatch):
    """The samples that the pass over new matrices keeps are those that the solver asks for."""
    Ks, y = several(n_classes)
    model = kw.MKLClassifier("precomputed", regularizer=kw.LpNorm(1.0))
    monkeypatch.setattr(Foresight, "is_of", lambda *args: False)  # or the look comes before that pass
    calls, whole = [], DenseGram._square_parts
    monkeypatch.setattr(
        DenseGram, "_square_parts", lambda *args: (calls.append(len(args[2])), whole(*args))[1]
    )
    found = clone(model).fit(kw.KernelStack(Ks), y)
    assert calls == []
    monkeypatch.setattr("kernelweave.estimators._mkl.looked_at", lambda *args: None)
    np.testing.assert_allclose(found.weights_, clone(model).fit(kw.KernelStack(Ks), y).weights_, rtol=1e-6)
    assert calls == [100]


@pytest.fixture
def guessed(monkeypatch):
    """The weighted sums that were made while matrices were checked."""
    made, whole = [], Kernels.guess
    monkeypatch.setattr(Kernels, "guess", lambda *args: (made.append(whole(*args)), made[-1])[1])
    return made


@pytest.mark.parametrize(
    ("p", "trains"), [(1.0, True), (1.0, False), (4 / 3, False), (2.0, False), (4.0, False)]
)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("normalize", ["variance", "trace", None])
def test_a_fit_that_begins_in_the_checking_pass_is_certified_for_the_kernels(
    guessed, monkeypatch, p, trains, weighted, normalize
):
    """Norms and dual variables give the same gap from the normalised matrices themselves.

    With few kernels that have weight, the first machine is trained before that pass.
    """
    monkeypatch.setattr("kernelweave.gram.dictionary.FEW_WEIGHTS", float(trains))
    Ks, y = several(widths=MANY_WIDTHS)
    weight = np.random.default_rng(1).integers(1, 3, size=len(y)).astype(float) if weighted else None
    model = kw.MKLClassifier("precomputed", regularizer=kw.LpNorm(p), normalize=normalize)
    model.fit([K.copy() for K in Ks], y, sample_weight=weight)
    assert guessed[-1] is not None
    assert (guessed[-1].start is not None) == trains
    assert model.history_["n_passes"][0] < 1.0  # it began with the guess
    share = np.full(len(y), 1.0 / len(y)) if weight is None else weight / weight.sum()
    scales = {
        "variance": [1.0 / (share @ K.diagonal() - share @ K @ share) for K in Ks],
        "trace": [1.0 / (share @ K.diagonal()) for K in Ks],
        None: [1.0] * len(Ks),
    }[normalize]
    gram = DenseGram(Ks, np.array(scales))
    costs = np.ones((len(y), 1)) if weight is None else weight[:, None]
    problem = Problem(2.0 * y[:, None] - 1.0, Hinge(), costs)
    alpha = model.dual_coef_.reshape(-1, 1)
    proof = certificate(problem, gram, kw.LpNorm(p), alpha, model.weights_)
    assert proof.gap <= 1.001e-3
    np.testing.assert_allclose(proof.gap, model.dual_gap_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("regularizer", "begins"),
    [
        (kw.LpNorm(2.0), True),
        (kw.LpNorm(4.0, costs=np.arange(1.0, 31.0)), True),
        (kw.BlockNorm(1.5), True),
        (kw.BlockNorm(4.0), False),
        (kw.ElasticNet(0.5, form="constraint"), True),
        (kw.ElasticNet(1.0, form="constraint"), True),
        (kw.Uniform(), False),
        (kw.LpNorm(np.inf), False),
        (kw.Mahalanobis(), False),
    ],
)
@pytest.mark.parametrize("classes", [2, 4])
def test_weights_are_within_the_bound_also_if_looks_find_other_scales(
    guessed, regularizer, begins, classes, rng
):
    """Models end with the weights of the first machine, whose sum was made for scales of some samples."""
    Z = rng.normal(size=(700, 60))
    Z[-100:] *= 3.0
    y = np.digitize(Z[:, 0] + 0.5 * rng.normal(size=700), np.linspace(-1.0, 1.0, classes + 1)[1:-1])
    Ks = [Z[:, m : m + 2] @ Z[:, m : m + 2].T for m in range(0, 60, 2)]
    model = kw.MKLClassifier("precomputed", regularizer=regularizer, tol=0.1).fit(kw.KernelStack(Ks), y)
    scales = [1.0 / (K.diagonal().mean() - K.mean()) for K in Ks]
    rule = regularizer.bound_to(DenseGram(Ks, np.array(scales)))
    assert bool(guessed and guessed[-1]) == begins or classes == 4
    for weights in np.atleast_2d(model.weights_):
        assert rule.price(weights) == 0.0
        np.testing.assert_allclose(rule.multiple(weights) or weights, 1.0, rtol=1e-9)


@pytest.mark.parametrize(
    ("estimator", "regularizer"),
    [
        (kw.MKLClassifier("precomputed", loss="logistic"), kw.LpNorm(1.0)),
        (kw.MKLClassifier("precomputed"), kw.ElasticNet(0.2)),
        (kw.MKLRegressor("precomputed"), kw.LpNorm(1.0)),
        (kw.MKLRegressor("precomputed", loss="eps_insensitive"), kw.LpNorm(1.0, form="penalty")),
    ],
)
@pytest.mark.parametrize("nearly", [0.0, np.inf])
def test_a_machine_trained_before_the_others_are_read_changes_no_optimum(
    guessed, monkeypatch, estimator, regularizer, nearly
):
    Ks, y = several(widths=MANY_WIDTHS)
    monkeypatch.setattr("kernelweave.solvers.growing.NEARLY", nearly)
    monkeypatch.setattr("kernelweave.gram.dictionary.FEW_WEIGHTS", 1.0)
    model = clone(estimator).set_params(regularizer=regularizer, tol=1e-5)
    found = clone(model).fit(kw.KernelStack(Ks), y.astype(float))
    assert guessed[-1].start is not None
    assert guessed[-1].n_machines == (1 if nearly == 0.0 else 2)
    assert found.n_iter_ >= guessed[-1].n_machines
    monkeypatch.setattr(Foresight, "look", lambda *args: None)
    expected = clone(model).fit(kw.KernelStack(Ks), y.astype(float))
    assert guessed[-1] is None
    assert max(found.dual_gap_, expected.dual_gap_) <= 1e-5
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=2e-5)


@pytest.mark.parametrize("regularizer", [kw.ElasticNet(), kw.ElasticNet(0.1), kw.Wedge(), kw.LpNorm(1.0)])
def test_weights_near_their_bound_are_no_obstacle(guessed, regularizer, monkeypatch):
    """Scales that looks find differ a little: weights may then exceed a bound, or leave their order."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 30))
    y = 100.0 * (X[:, :8].sum(axis=1) + 0.1 * rng.normal(size=600))
    model = kw.MKLRegressor("precomputed", regularizer=regularizer, tol=1e-5)
    Ks = kw.KernelStack([np.outer(x, x) for x in X.T])
    found = clone(model).fit(Ks, y)
    assert guessed[-1] is not None
    monkeypatch.setattr(Foresight, "look", lambda *args: None)
    expected = clone(model).fit(Ks, y)
    assert max(found.dual_gap_, expected.dual_gap_) <= 1e-5
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=2e-5)


def test_the_pass_brings_the_squares_of_kernels_without_weight(guessed, monkeypatch):
    """alpha'K alpha of all kernels is known after the pass that checks: no other reading brings them."""
    Ks, y = several(widths=MANY_WIDTHS)
    monkeypatch.setattr("kernelweave.gram.dictionary.FEW_WEIGHTS", 1.0)
    asked = []
    monkeypatch.setattr("kernelweave.gram.dense.SMALL_SUPPORT", 0.0)  # one of these does not ask the other
    for name in ("quad", "quad_and_products"):
        whole = getattr(DenseGram, name)
        monkeypatch.setattr(
            DenseGram, name, lambda *args, whole=whole: (asked.append(args[0].matrices), whole(*args))[1]
        )
    model = kw.MKLClassifier("precomputed", regularizer=kw.LpNorm(1.0)).fit(kw.KernelStack(Ks), y)
    before, live = guessed[-1].n_machines, np.count_nonzero(guessed[-1].weights)
    read = [len(matrices) for matrices in asked if len(matrices[0]) == len(y)]
    assert read == [live] * before + [len(Ks)] * (model.n_iter_ - before)


@pytest.mark.parametrize("scheme", ["ovr", "shared"])
@pytest.mark.parametrize("room", [True, False])
def test_classes_that_begin_with_one_sum_are_those_that_do_not(guessed, scheme, room, monkeypatch):
    """Whoever is first to have done with the sum does not release it for the others."""
    Ks, y = several(4)
    if not room:
        monkeypatch.setattr("kernelweave.gram.sweep.SMALL_SUM", 0)
        monkeypatch.setattr("kernelweave.gram.sweep.SUM_BYTES", 0)
        monkeypatch.setattr("kernelweave.gram.sweep.SUM_SHARE", 0.0)
        monkeypatch.setattr("kernelweave.gram.sweep.LEAST_SUMS", 1)
    model = kw.MKLClassifier("precomputed", multiclass=scheme, tol=1e-5)
    found = clone(model).fit(kw.KernelStack(Ks), y)
    assert guessed[-1] is not None
    monkeypatch.setattr(Foresight, "look", lambda *args: None)
    expected = clone(model).fit(kw.KernelStack(Ks), y)
    assert guessed[-1] is None
    assert np.max(found.dual_gap_) <= 1e-5
    np.testing.assert_allclose(found.objective_, expected.objective_, rtol=2e-5)
    X = kw.KernelStack(Ks)
    np.testing.assert_allclose(found.predict_proba(X), expected.predict_proba(X), atol=5e-3)


@pytest.mark.parametrize("where", [(3, 5), (640, 20), (0, 649)])
@pytest.mark.parametrize(
    ("bad", "told"), [(np.nan, "NaN or infinite"), (np.inf, "NaN or infinite"), (7.0, "not symmetric")]
)
@pytest.mark.parametrize(("p", "kernel"), [(4 / 3, 1), (1.0, 0), (1.0, 2), (1.0, 3), (1.0, 9)])
def test_looks_at_matrices_that_nobody_has_checked_hide_no_error(where, bad, told, p, kernel, monkeypatch):
    monkeypatch.setattr("kernelweave.gram.dictionary.FEW_WEIGHTS", 0.5)
    Ks, y = several(widths=MANY_WIDTHS)
    Ks[kernel][where] = bad
    with pytest.raises(ValueError, match=f"kernel 'kernel {kernel}' {'is' if bad == 7.0 else 'has'} {told}"):
        kw.MKLClassifier("precomputed", regularizer=kw.LpNorm(p)).fit(kw.KernelStack(Ks), y)


@pytest.mark.parametrize("p", [1.0, 4 / 3])
def test_a_kernel_without_variance_is_left_out_of_the_first_sum(guessed, p):
    Ks, y = several(widths=MANY_WIDTHS)
    for K in (np.ones_like(Ks[0]), -np.eye(len(y))):
        model = kw.MKLClassifier("precomputed", regularizer=kw.LpNorm(p))
        given = kw.KernelStack([*Ks, K])
        if K[0, 0] > 0:
            with pytest.warns(UserWarning, match="without variance.* Leave such matrices out"):
                model.fit(given, y)
            assert model.weights_[-1] == 0.0
        else:
            with pytest.raises(ValueError, match="positive semidefinite"):
                model.fit(given, y)
        assert guessed[-1] is None


def test_a_path_and_a_checkpoint_begin_without_a_guess(guessed, tmp_path):
    Ks, y = several()
    kw.MKLClassifier("precomputed", checkpoint=tmp_path / "run").fit(kw.KernelStack(Ks), y)
    kw.mkl_path(kw.MKLClassifier("precomputed"), kw.KernelStack(Ks), y, values=[0.1, 1.0])
    assert guessed == []
