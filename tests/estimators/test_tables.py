"""Data in tables: DataFrames, sparse matrices, columns of text beside columns of numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_selector
from sklearn.model_selection import GridSearchCV, cross_val_score

import kernelweave as kw
from kernelweave.kernels import RBF, FunctionKernel, Linear, Polynomial, Spectrum, WeightedDegree, per_feature

NAMES = ["age", "height", "weight", "dose"]


@pytest.fixture
def frame(binary):
    return pd.DataFrame(binary.X, columns=NAMES)


@pytest.fixture
def new_frame(binary):
    return pd.DataFrame(binary.X_new, columns=NAMES)


@pytest.fixture
def mixed(frame, binary):
    """Numbers and a column of sequences; the class is partly written in the sequence."""
    rng = np.random.default_rng(3)
    alphabet = {0: list("AACG"), 1: list("GTTC")}
    words = ["".join(rng.choice(alphabet[label], 12)) for label in binary.y]
    return frame.assign(sequence=words)


# -- DataFrames ---------------------------------------------------------------------------------


def test_a_frame_gives_the_model_of_its_values(binary, frame, new_frame):
    named = kw.MKLClassifier([RBF(), Linear()]).fit(frame, binary.y)
    plain = kw.MKLClassifier([RBF(), Linear()]).fit(binary.X, binary.y)
    np.testing.assert_allclose(
        named.decision_function(new_frame), plain.decision_function(binary.X_new), atol=1e-10
    )
    assert list(named.feature_names_in_) == NAMES
    assert named.n_features_in_ == 4
    assert not hasattr(plain, "feature_names_in_")


SELECTIONS = {
    "names": ["height", "weight"],
    "positions": [1, 2],
    "negative positions": [-3, -2],
    "slice": slice(1, 3),
    "slice of names": slice("height", "weight"),
    "mask": [False, True, True, False],
    "selector": make_column_selector("eight"),
    "function": lambda X: ["height", "weight"],
}


@pytest.mark.parametrize("columns", SELECTIONS.values(), ids=SELECTIONS)
def test_columns_may_be_chosen_in_many_ways(binary, frame, new_frame, columns):
    chosen = kw.MKLClassifier([RBF(columns=columns), Linear(columns=columns)]).fit(frame, binary.y)
    only = kw.MKLClassifier([RBF(), Linear()]).fit(binary.X[:, 1:3], binary.y)
    np.testing.assert_allclose(
        chosen.decision_function(new_frame), only.decision_function(binary.X_new[:, 1:3]), atol=1e-10
    )


def test_one_column_by_name_or_position(binary, frame):
    by_name = kw.MKLClassifier([RBF(columns="dose")]).fit(frame, binary.y)
    by_position = kw.MKLClassifier([RBF(columns=3)]).fit(frame, binary.y)
    np.testing.assert_array_equal(by_name.dual_coef_, by_position.dual_coef_)


def test_triples_put_kernels_on_columns(binary, frame):
    triples = [("body", RBF(), ["height", "weight"]), ("dose", Linear(), ["dose"])]
    kernels = {"body": RBF(columns=["height", "weight"]), "dose": Linear(columns=["dose"])}
    model = kw.MKLClassifier(triples).fit(frame, binary.y)
    np.testing.assert_array_equal(model.dual_coef_, kw.MKLClassifier(kernels).fit(frame, binary.y).dual_coef_)
    assert model.kernel_names_ == ["body", "dose"]


def test_families_name_their_kernels_after_columns(binary, frame):
    assert kw.MKLClassifier(per_feature(RBF())).fit(frame, binary.y).kernel_names_ == NAMES


def test_other_columns_at_prediction_are_an_error(binary, frame, new_frame):
    model = kw.MKLClassifier([RBF()]).fit(frame, binary.y)
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(new_frame.rename(columns={"dose": "dosis"}))
    with pytest.raises(ValueError, match="same order"):
        model.predict(new_frame[NAMES[::-1]])
    with pytest.raises(ValueError, match="feature names"):
        model.predict(new_frame[NAMES[:3]])


def test_values_without_names_warn_at_prediction(binary, frame):
    model = kw.MKLClassifier([RBF()]).fit(frame, binary.y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(binary.X_new)


def test_integer_boolean_and_float32_columns(binary, frame):
    typed = frame.assign(
        age=frame["age"].round().astype("int32"),
        height=frame["height"] > 0,
        weight=frame["weight"].astype("float32"),
    )
    model = kw.MKLClassifier([RBF(), Linear()]).fit(typed, binary.y)
    as_floats = kw.MKLClassifier([RBF(), Linear()]).fit(typed.astype(float), binary.y)
    np.testing.assert_allclose(
        model.decision_function(typed), as_floats.decision_function(typed.astype(float))
    )


def test_the_index_of_a_frame_does_not_matter(binary, frame):
    shuffled = frame.set_index(np.random.default_rng(0).permutation(1000)[:60])
    target = pd.Series(binary.y, index=shuffled.index)
    np.testing.assert_array_equal(
        kw.MKLClassifier().fit(shuffled, target).dual_coef_,
        kw.MKLClassifier().fit(frame, binary.y).dual_coef_,
    )


@pytest.mark.parametrize("name", ["p{}".format, int])
def test_ids_in_another_order_are_refused_numbers_or_text(binary, name):
    X, y = binary[:2]
    ids, order = [name(k) for k in range(1000, 1000 + len(X))], np.random.default_rng(0).permutation(len(X))
    table, labels = pd.DataFrame(X, index=ids), pd.Series(y, index=ids)
    with pytest.raises(ValueError, match=r"same IDs in different orders .*: pass y\.loc\[X\.index\]"):
        kw.MKLClassifier([RBF(), Linear()]).fit(table.iloc[order], labels)
    rows = table.iloc[order]
    one = kw.MKLClassifier([RBF(), Linear()]).fit(rows, labels.loc[rows.index])
    assert_allclose(one.weights_, kw.MKLClassifier([RBF(), Linear()]).fit(X[order], y[order]).weights_)


def test_an_index_that_counts_rows_says_nothing_about_their_order(binary):
    X, y = binary[:2]
    order = np.random.default_rng(0).permutation(len(X))
    first = kw.MKLClassifier([RBF(), Linear()]).fit(X, y)
    for rows, labels in [
        (order, np.arange(len(X))),
        (np.arange(len(X)), order),
        (order // 2, order[::-1] // 2),
    ]:
        table, targets = pd.DataFrame(X, index=rows), pd.Series(y, index=labels)
        model = kw.MKLClassifier([RBF(), Linear()]).fit(table, targets)
        assert_allclose(model.weights_, first.weights_)


# -- sparse matrices ----------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [sparse.csr_matrix, sparse.csc_array, sparse.coo_matrix])
def test_sparse_input_gives_the_dense_model(binary, wrap):
    X, X_new = np.maximum(binary.X, 0.0), np.maximum(binary.X_new, 0.0)
    kernels = {"all": Linear(), "two": RBF(columns=[0, 1]), "poly": Polynomial(columns=slice(1, 4))}
    dense = kw.MKLClassifier(kernels, tol=1e-8).fit(X, binary.y)
    thin = kw.MKLClassifier(kernels, tol=1e-8).fit(wrap(X), binary.y)
    np.testing.assert_allclose(thin.decision_function(wrap(X_new)), dense.decision_function(X_new), atol=1e-6)
    np.testing.assert_allclose(thin.weights_, dense.weights_, atol=1e-6)


# -- text and numbers ---------------------------------------------------------------------------

VIEWS = {"sequence": Spectrum(k=2, columns="sequence"), "body": RBF(columns=NAMES)}


def test_strings_and_numbers_side_by_side(mixed, frame, binary):
    model = kw.MKLClassifier(VIEWS).fit(mixed, binary.y)
    assert model.kernel_names_ == ["sequence", "body"]
    assert (model.weights_ > 0).all()
    # the same two matrices, computed apart
    K = np.dstack([Spectrum(k=2)(mixed[["sequence"]]), RBF()(frame)])
    np.testing.assert_allclose(
        model.dual_coef_, kw.MKLClassifier("precomputed").fit(K, binary.y).dual_coef_, atol=1e-8
    )


def test_strings_survive_model_selection(mixed, binary):
    scores = cross_val_score(kw.MKLClassifier(VIEWS), mixed, binary.y, cv=3)
    assert scores.mean() > 0.8
    search = GridSearchCV(kw.MKLClassifier(VIEWS), {"C": [0.1, 1.0]}, cv=2).fit(mixed, binary.y)
    assert search.predict(mixed).shape == (60,)


def test_strings_one_row_at_a_time(mixed, binary):
    for normalize in ("variance", "spherical", "center"):
        model = kw.MKLClassifier(VIEWS, normalize=normalize).fit(mixed, binary.y)
        part = mixed.iloc[:8]
        singly = np.concatenate([model.decision_function(part.iloc[[i]]) for i in range(8)])
        np.testing.assert_allclose(singly, model.decision_function(part), atol=1e-10)


def test_strings_in_an_object_array(mixed, binary):
    values = mixed.to_numpy(dtype=object)
    kernels = {"sequence": Spectrum(k=2, columns=4), "body": RBF(columns=slice(0, 4))}
    by_position = kw.MKLClassifier(kernels).fit(values, binary.y)
    by_name = kw.MKLClassifier(VIEWS).fit(mixed, binary.y)
    np.testing.assert_allclose(by_position.dual_coef_, by_name.dual_coef_, atol=1e-10)
    np.testing.assert_array_equal(by_position.predict(values), by_name.predict(mixed))


def test_a_table_of_strings_alone(mixed, binary):
    kernels = [Spectrum(k=1), Spectrum(k=2), WeightedDegree(degree=3, shift=1)]
    model = kw.MKLClassifier(kernels).fit(mixed[["sequence"]], binary.y)
    assert model.score(mixed[["sequence"]], binary.y) > 0.9


def test_text_that_no_kernel_reads_is_no_obstacle(mixed, frame, binary):
    """Kernels on numbers take a table that also has a column of notes."""
    beside = kw.MKLClassifier([RBF(columns=NAMES)]).fit(mixed, binary.y)
    alone = kw.MKLClassifier([RBF(columns=NAMES)]).fit(frame, binary.y)
    np.testing.assert_allclose(beside.dual_coef_, alone.dual_coef_, atol=1e-10)
    np.testing.assert_array_equal(beside.predict(mixed), alone.predict(frame))


def test_auto_takes_the_columns_of_numbers_and_names_the_others(mixed, frame, binary):
    with pytest.warns(UserWarning, match="leaves out 1 of 5: 'sequence'"):
        auto = kw.MKLClassifier("auto").fit(mixed, binary.y)
    np.testing.assert_allclose(
        auto.dual_coef_, kw.MKLClassifier("auto").fit(frame, binary.y).dual_coef_, atol=1e-10
    )


@pytest.mark.parametrize("kernels", ["auto", [RBF(), Linear()]])
@pytest.mark.parametrize("as_text", [True, False])
def test_text_in_a_cell_of_a_column_of_numbers_is_named(frame, binary, kernels, as_text):
    slipped = frame.astype({"height": str if as_text else object})
    slipped.loc[slipped.index[3], "height"] = "n/a?"
    words = (
        r"column 'height' holds numbers, but text in 1 cell, such as 'n/a\?' \(row 4\): correct these cells"
    )
    with pytest.raises(ValueError, match=words):
        kw.MKLClassifier(kernels).fit(slipped, binary.y)


def test_objects_that_are_numbers_are_numbers(frame, new_frame, binary):
    objects = frame.astype(object)
    one, two = kw.MKLClassifier().fit(frame, binary.y), kw.MKLClassifier().fit(objects, binary.y)
    assert one.kernel_names_ == two.kernel_names_
    assert_allclose(two.decision_function(new_frame.astype(object)), one.decision_function(new_frame))
    beside = objects.assign(colour=["red", "blue"] * 30)
    with pytest.warns(UserWarning, match="leaves out 1 of 5: 'colour'"):
        three = kw.MKLClassifier().fit(beside, binary.y)
    assert_allclose(three.decision_function(beside), one.decision_function(frame))


def test_a_function_may_read_the_columns_as_they_are(mixed, binary):
    def same_first_letter(A, B):
        return (A.to_numpy()[:, :1].astype("U1") == B.to_numpy()[:, :1].astype("U1").T).astype(float)

    kernel = FunctionKernel(same_first_letter, columns="sequence", accepts="any")
    model = kw.MKLClassifier({"letter": kernel, "body": RBF(columns=NAMES)}).fit(mixed, binary.y)
    assert model.predict(mixed).shape == (60,)


# -- tables of polars and pyarrow -----------------------------------------------------------------


@pytest.fixture(params=["polars", "pyarrow"])
def table(request):
    """A function that makes a table of the library from one of pandas."""
    library = pytest.importorskip(request.param)
    make = library.DataFrame if request.param == "polars" else library.table
    return lambda frame: make({str(name): frame[name].tolist() for name in frame})


MODELS = [
    kw.MKLClassifier([RBF(columns=["age", "height"]), Linear(columns="dose")]),
    kw.MKLClassifier(),
    kw.MKLRegressor(per_feature(RBF())),
    kw.MKLOneClass([RBF(columns=slice("height", "dose"))]),
    kw.MKLClassifierCV([RBF(columns="age"), Linear()], Cs=2, cv=3),
    kw.GroupOMPClassifier(per_feature(RBF())),
    kw.GroupOMPRegressorCV(per_feature(Linear()), alphas=2, cv=3),
    kw.EmpiricalBayesRegressor([RBF(columns=["height", "weight"]), Linear()]),
    kw.GMKLClassifier(),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_other_tables_are_as_good_as_frames(binary, frame, new_frame, table, model):
    ours = clone(model).fit(table(frame), binary.y)
    theirs = clone(model).fit(frame, binary.y)
    assert ours.kernel_names_ == theirs.kernel_names_
    assert list(ours.feature_names_in_) == NAMES
    method = "decision_function" if hasattr(ours, "decision_function") else "predict"
    expected = getattr(theirs, method)(new_frame)
    np.testing.assert_allclose(getattr(ours, method)(table(new_frame)), expected, atol=1e-10)
    np.testing.assert_allclose(getattr(ours, method)(new_frame), expected, atol=1e-10)


def test_other_columns_of_other_tables_are_an_error(binary, frame, new_frame, table):
    model = kw.MKLClassifier([RBF(columns=["age", "dose"])]).fit(table(frame), binary.y)
    with pytest.raises(ValueError, match="same order"):
        model.predict(table(new_frame[NAMES[::-1]]))
    with pytest.raises(ValueError, match="unknown columns"):
        kw.MKLClassifier([RBF(columns=["ages"])]).fit(table(frame), binary.y)


def test_text_and_typed_columns_of_other_tables(binary, mixed, table):
    typed = mixed.assign(tall=mixed["height"] > 0, count=np.arange(60) % 3)
    kernels = {
        "body": RBF(columns=["height", "weight", "count"]),
        "flag": Linear(columns=["tall", "age"]),
        "dna": Spectrum(2, columns="sequence"),
        "own": FunctionKernel(last_letter, columns=["sequence"], accepts="any"),
    }
    weight = np.where(np.arange(60) % 7 == 0, 0.0, 1.0)
    ours = kw.MKLClassifier(kernels, normalize="spherical").fit(table(typed), binary.y, weight)
    theirs = kw.MKLClassifier(kernels, normalize="spherical").fit(typed, binary.y, weight)
    np.testing.assert_allclose(
        ours.decision_function(table(typed)), theirs.decision_function(typed), atol=1e-10
    )
    scores = cross_val_score(kw.MKLClassifier(kernels), table(typed), binary.y, cv=3)
    np.testing.assert_array_equal(scores, cross_val_score(kw.MKLClassifier(kernels), typed, binary.y, cv=3))


@pytest.mark.parametrize("alone", [False, True], ids=["pandas there", "polars alone"])
def test_a_model_of_another_table_can_be_saved(binary, mixed, table, tmp_path, monkeypatch, alone):
    if alone:
        pytest.importorskip("polars")
        there = {"pandas": None, "polars": object()}
        monkeypatch.setattr("kernelweave.persistence.values.find_spec", there.get)
    kernels = [RBF(columns=["height", "weight"]), Spectrum(2, columns="sequence")]
    model = kw.MKLClassifier(kernels).fit(table(mixed), binary.y)
    kw.save_model(model, tmp_path / "model.kw")
    loaded = kw.load_model(tmp_path / "model.kw")
    np.testing.assert_array_equal(
        loaded.decision_function(table(mixed)), model.decision_function(table(mixed))
    )


# -- text alone -----------------------------------------------------------------------------------


def last_letter(A, B):
    """1 where two texts end alike; sparse."""
    ends = [[str(word)[-1] for word in np.asarray(side, dtype=object).ravel()] for side in (A, B)]
    return sparse.csr_array((np.array(ends[0])[:, None] == np.array(ends[1])[None]).astype(float))


TEXTS = {
    "list": list,
    "array": np.array,
    "objects": lambda words: np.array(words, dtype=object),
    "column": lambda words: np.array(words)[:, None],
    "series": lambda words: pd.Series(words, name="sequence"),
    "frame": lambda words: pd.DataFrame({"sequence": words}),
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("make", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize(
    "kernels",
    [[FunctionKernel(last_letter, accepts="any")], [Spectrum(2), FunctionKernel(last_letter, accepts="any")]],
    ids=["function", "both"],
)
def test_text_alone_in_any_container(binary, mixed, make, kernels, tmp_path):
    words = mixed["sequence"].tolist()
    X, y = make(words), binary.y
    model = kw.MKLClassifier(kernels).fit(X, y)
    grams = [last_letter(words, words).toarray(), Spectrum(2)(np.array(words)[:, None])]
    given = np.dstack(grams[: len(kernels)] if len(kernels) == 1 else grams[::-1])
    expected = kw.MKLClassifier("precomputed").fit(given, y)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(given), atol=1e-8)
    assert model.n_features_in_ == 1
    scores = cross_val_score(kw.MKLClassifier(kernels), X, y, cv=3)
    np.testing.assert_array_equal(scores, cross_val_score(kw.MKLClassifier("precomputed"), given, y, cv=3))
    assert kw.MKLClassifierCV(kernels, Cs=2, cv=3).fit(X, y).predict(X).shape == (60,)


@pytest.mark.parametrize("make", TEXTS.values(), ids=TEXTS)
def test_a_model_of_text_alone_can_be_saved(binary, mixed, make, tmp_path):
    X = make(mixed["sequence"].tolist())
    model = kw.MKLClassifier([Spectrum(2)]).fit(X, binary.y)
    kw.save_model(model, tmp_path / "model.kw")
    np.testing.assert_array_equal(
        kw.load_model(tmp_path / "model.kw").decision_function(X), model.decision_function(X)
    )


def test_numbers_in_one_axis_are_still_refused(binary):
    with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
        kw.MKLClassifier([RBF()]).fit(binary.X[:, 0], binary.y)
    with pytest.raises(ValueError, match="not a string"):
        kw.MKLClassifier([Spectrum(2)]).fit(["AC", None] * 30, binary.y)


def test_a_function_may_return_a_sparse_matrix(binary):
    def thin(A, B):
        return sparse.csr_matrix(A @ B.T)

    ours = kw.MKLClassifier([FunctionKernel(thin), RBF()], normalize="spherical").fit(binary.X, binary.y)
    linear = kw.MKLClassifier([Linear(), RBF()], normalize="spherical").fit(binary.X, binary.y)
    np.testing.assert_allclose(
        ours.decision_function(binary.X_new), linear.decision_function(binary.X_new), atol=1e-9
    )
