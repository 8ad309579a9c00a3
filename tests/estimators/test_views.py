"""Several tables as one X, in every estimator: the fit on all columns side by side, by the names of views."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.model_selection import (
    GridSearchCV,
    StratifiedGroupKFold,
    cross_val_predict,
    cross_val_score,
    learning_curve,
    permutation_test_score,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave.kernels import RBF, Linear, Spectrum, per_feature

N = 30
RNG = np.random.default_rng(0)
A, B = RNG.normal(size=(N, 4)), RNG.normal(size=(N, 3))
T = A[:, 0] + B[:, 1] ** 2 + 0.1 * RNG.normal(size=N)
Y = np.where(T > np.median(T), "high", "low")
IDS = [f"p{i:02d}" for i in range(N)]
RNA = pd.DataFrame(A, index=IDS, columns=["g1", "g2", "h1", "h2"])
PROTEIN = pd.DataFrame(B, index=IDS, columns=["p1", "p2", "p3"])
LABELS = pd.Series(Y, index=IDS)
TABLES = {"rna": RNA, "protein": PROTEIN}
VIEWS = kw.Views({"rna": A, "protein": B})
SPEC = {"rna": [RBF(), Linear()], "protein": per_feature()}

#: the same kernels on columns of one table
SIDE_BY_SIDE = {
    "rna: RBF(gamma=scale)": RBF(columns=[0, 1, 2, 3]),
    "rna: Linear": Linear(columns=[0, 1, 2, 3]),
    **{f"protein: x{j}": RBF(columns=[4 + j]) for j in range(3)},
}
X = np.hstack([A, B])

ESTIMATORS = {
    "MKLClassifier": kw.MKLClassifier(),
    "MKLRegressor": kw.MKLRegressor(approximation="nystroem", rank=10, random_state=0),
    "MKLOneClass": kw.MKLOneClass(),
    "MKLClassifierCV": kw.MKLClassifierCV(cv=2, Cs=2),
    "GroupOMPRegressor": kw.GroupOMPRegressor(n_kernels=2),
    "GroupOMPClassifierCV": kw.GroupOMPClassifierCV(cv=2),
    "EmpiricalBayesRegressor": kw.EmpiricalBayesRegressor(),
}


def fitted(name, kernels, data):
    targets = {"Classifier": Y, "Regressor": T}
    y = next((values for kind, values in targets.items() if kind in name), None)
    model = clone(ESTIMATORS[name]).set_params(kernels=kernels)
    return model.fit(data) if y is None else model.fit(data, y)


def values(model, data):
    return (model.decision_function if hasattr(model, "decision_function") else model.predict)(data)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_views_are_columns_side_by_side(name):
    model, other = fitted(name, SPEC, VIEWS), fitted(name, SIDE_BY_SIDE, X)
    assert model.kernel_names_ == other.kernel_names_
    assert_allclose(model.weights_, other.weights_, rtol=1e-9, atol=1e-12)
    assert_allclose(values(model, VIEWS[:7]), values(other, X[:7]), rtol=1e-9, atol=1e-10)
    assert_array_equal(values(model, {"protein": B[:7], "rna": A[:7]}), values(model, VIEWS[:7]))
    assert model.n_features_in_ == 7
    assert model.views_in_ == {"rna": 4, "protein": 3}
    assert not hasattr(model, "feature_names_in_")
    assert_array_equal(values(pickle.loads(pickle.dumps(model)), VIEWS), values(model, VIEWS))


@pytest.mark.parametrize("gram", ["packed", "cached", "blocked"])
def test_every_engine(gram):
    model, dense = (kw.MKLRegressor(SPEC, gram=g, tol=1e-8).fit(VIEWS, T) for g in (gram, "dense"))
    assert_allclose(model.predict(VIEWS), dense.predict(VIEWS), atol=1e-6)


def test_a_learned_kernel_sees_all_columns():
    model, other = (kw.GMKLClassifier().fit(data, Y) for data in (TABLES, X))
    assert model.kernel_names_[3:5] == ["rna: h2", "protein: p1"]
    assert_allclose(model.weights_, other.weights_, rtol=1e-9, atol=1e-12)
    assert_allclose(model.decision_function(TABLES), other.decision_function(X), rtol=1e-9, atol=1e-10)


def test_containers_of_every_kind_give_the_same_fit():
    pl = pytest.importorskip("polars")
    kinds = [
        TABLES,
        pd.concat(TABLES, axis=1),
        kw.Views({"rna": sparse.csr_matrix(A), "protein": PROTEIN}),
        {name: pl.DataFrame(table.to_dict("list")) for name, table in TABLES.items()},
    ]
    models = [kw.MKLRegressor(SPEC, tol=1e-9).fit(data, T) for data in kinds]
    expected = models[0].predict(kinds[0])
    for model, data in zip(models, kinds, strict=True):
        assert_allclose(model.predict(data), expected, rtol=1e-6)
    assert models[1].feature_names_in_.tolist() == [
        *(f"rna: {c}" for c in RNA),
        *(f"protein: {c}" for c in PROTEIN),
    ]
    assert models[3].views_in_ == {"rna": list(RNA), "protein": list(PROTEIN)}


def test_text_beside_numbers():
    dna = ["".join(RNG.choice(list("ACGT"), 6)) for _ in range(N)]
    model = kw.MKLClassifier({"rna": RBF(), "dna": Spectrum(2)}).fit({"rna": RNA, "dna": dna}, Y)
    assert model.kernel_names_ == ["rna", "dna"]
    assert len(model.predict({"rna": RNA[:3], "dna": dna[:3]})) == 3


def test_views_without_a_kernel_are_not_needed():
    model = kw.MKLClassifier({"protein": RBF()}).fit(VIEWS, Y)
    alone = kw.MKLClassifier(RBF()).fit(B, Y)
    assert_array_equal(model.predict({"protein": B}), alone.predict(B))
    assert model.model_.source.X.names == ["protein"]


def test_coefficients_of_all_columns():
    model = kw.MKLRegressor(Linear()).fit(VIEWS, T)
    assert model.kernel_names_ == ["rna", "protein"]
    assert_allclose(X @ model.coef_ + model.intercept_, model.predict(VIEWS), atol=1e-12)


def test_the_source_knows_views_and_gaps():
    model = kw.MKLRegressor(SPEC).fit(VIEWS, T)
    gaps = model.model_.source.gaps
    assert gaps.views == ["rna", "rna", "protein", "protein", "protein"]
    assert gaps.observed.all()


# -- samples by their IDs -----------------------------------------------------------------------


def test_samples_in_any_order():
    sorted_ = kw.MKLClassifier(SPEC).fit(TABLES, LABELS)
    order = RNG.permutation(N)
    shuffled = {"rna": RNA.iloc[order], "protein": PROTEIN[::-1]}
    model = kw.MKLClassifier(SPEC).fit(shuffled, LABELS)
    assert_array_equal(model.weights_, sorted_.weights_)
    assert_array_equal(model.decision_function(TABLES), sorted_.decision_function(TABLES))
    assert_array_equal(model.predict(shuffled), sorted_.predict(TABLES)[order])
    assert model.score(shuffled, LABELS) == sorted_.score(TABLES, LABELS)
    regressor = kw.MKLRegressor(SPEC).fit(shuffled, pd.Series(T, index=IDS))
    assert regressor.score(shuffled, pd.Series(T, index=IDS)) == regressor.score(TABLES, T) > 0.5
    few = kw.MKLClassifierCV(SPEC, cv=2, Cs=2).fit(shuffled, LABELS[:20])  # labels say who is there
    assert len(few.best_estimator_.dual_coef_) == 20
    assert kw.GMKLClassifier().fit(shuffled, LABELS).score(shuffled, LABELS) > 0.8


@pytest.mark.parametrize("name", [name for name in ESTIMATORS if "OneClass" not in name])
def test_labels_put_rows_in_order_in_every_estimator(name):
    y = LABELS if "Classifier" in name else pd.Series(T, index=IDS)
    weight = np.where(np.arange(N) % 5 == 0, 0.0, 1.0)
    model, other = (clone(ESTIMATORS[name]).set_params(kernels=SPEC) for _ in range(2))
    model.fit({"rna": RNA[::-1], "protein": PROTEIN}, y, sample_weight=weight)
    other.fit(VIEWS, y.to_numpy(), sample_weight=weight)
    assert_allclose(model.weights_, other.weights_, rtol=1e-9, atol=1e-12)
    assert_allclose(values(model, TABLES), values(other, VIEWS), rtol=1e-9, atol=1e-10)
    assert model.score({"rna": RNA[::-1], "protein": PROTEIN}, y) == pytest.approx(
        other.score(VIEWS, y.to_numpy())
    )


def test_labels_without_ids_are_taken_in_order():
    more = {"rna": RNA, "protein": PROTEIN.rename(index={"p03": "p99"})}
    with pytest.raises(ValueError, match="tables of X have 31 samples in all, and y has 30 labels"):
        kw.MKLClassifier().fit(more, Y)
    assert kw.MKLClassifier().fit(TABLES, Y).score(TABLES, Y) > 0.8


def test_labels_without_ids_need_tables_in_one_order():
    mixed = {"rna": RNA[::-1], "protein": PROTEIN}
    for y in (Y, list(Y), pd.Series(Y)):
        with pytest.raises(ValueError, match=r"in different orders, and y has no IDs.*Views\(tables, ids="):
            kw.MKLClassifier().fit(mixed, y)
    with pytest.raises(ValueError, match="in different orders"):
        cross_val_score(kw.MKLClassifier(), kw.Views(kw.Views(mixed)), Y, error_score="raise")
    views = kw.Views(mixed, ids=IDS)
    asked, aligned = kw.MKLClassifier().fit(views, Y), kw.MKLClassifier().fit(mixed, LABELS)
    assert_array_equal(asked.decision_function(TABLES), aligned.decision_function(TABLES))
    in_first = kw.Views(mixed).in_order_of(LABELS[::-1])  # labels may say that the order is the right one
    assert in_first.in_order_of(Y[::-1]).ids.tolist() == IDS[::-1]


def test_row_numbers_in_another_order_are_refused():
    tables = {"rna": pd.DataFrame(A), "protein": pd.DataFrame(B)}
    counted, shuffled = pd.Series(Y), pd.Series(Y).sample(frac=1, random_state=0)
    model = kw.MKLClassifier().fit(tables, counted)
    for data in (tables, kw.Views(tables)):
        with pytest.raises(ValueError, match=r"row numbers.*Views\(tables, ids=y\.index\)"):
            kw.MKLClassifier().fit(data, shuffled)
    views = kw.Views(tables, ids=shuffled.index)
    assert_allclose(kw.MKLClassifier().fit(views, shuffled).weights_, model.weights_)
    assert model.score(views, shuffled) == model.score(tables, counted)
    rows = shuffled.index.to_numpy()  # rows and labels that were shuffled together
    assert kw.MKLClassifier().fit(kw.Views(tables)[rows], shuffled).score(tables, counted) > 0.8


@pytest.mark.parametrize("tables", [TABLES, {"rna": pd.DataFrame(A), "protein": pd.DataFrame(B)}])
def test_weights_and_groups_are_put_in_order(tables):
    index = tables["rna"].index
    y = pd.Series(Y, index)
    weight = pd.Series(np.linspace(0.1, 3.0, N) * (np.arange(N) % 4 > 0), index)
    groups = pd.Series(np.arange(N) // 3, index)
    order = np.random.default_rng(1).permutation(N)
    expected = kw.MKLClassifier().fit(tables, y, weight.to_numpy())
    model = kw.MKLClassifier().fit(tables, y, weight.iloc[order])
    assert_array_equal(model.weights_, expected.weights_)
    assert model.score(tables, y, weight.iloc[order]) == expected.score(tables, y, weight)
    splitter, seen = StratifiedGroupKFold(2), []
    splitter.split = lambda X, y, groups: seen.append(groups) or StratifiedGroupKFold(2).split(X, y, groups)
    search = kw.MKLClassifierCV(cv=splitter, Cs=2)
    search.fit(tables, y, sample_weight=weight.iloc[order], groups=groups.iloc[order])
    assert_array_equal(seen[0], groups)
    found = search.cv_results_["mean_test_score"]
    search.fit(tables, y, sample_weight=weight, groups=groups)
    assert_array_equal(search.cv_results_["mean_test_score"], found)


def test_weights_of_other_samples_are_refused():
    weight = pd.Series(1.0, index=[*IDS[1:], "q"])
    with pytest.raises(ValueError, match="sample_weight has no entry for 1 of 30 samples, such as 'p00'"):
        kw.MKLClassifier().fit(TABLES, LABELS, weight)
    ordered = kw.Views({"rna": A, "protein": B}, ids=IDS)  # an index that y has is the order of y
    y = pd.Series(Y, index=range(100, 100 + N))
    kw.MKLClassifier().fit(ordered, y, pd.Series(1.0, index=y.index))


# -- scikit-learn -------------------------------------------------------------------------------


def test_what_takes_arrays_takes_views():
    model, other = kw.MKLClassifier(SPEC), kw.MKLClassifier(SIDE_BY_SIDE)
    views = kw.Views(TABLES)
    assert_array_equal(cross_val_score(model, VIEWS, Y, cv=3), cross_val_score(other, X, Y, cv=3))
    grouped = {"cv": StratifiedGroupKFold(3), "groups": np.arange(N) // 2}
    assert_array_equal(cross_val_score(model, VIEWS, Y, **grouped), cross_val_score(other, X, Y, **grouped))
    assert_array_equal(cross_val_predict(model, views, LABELS, cv=3), cross_val_predict(other, X, Y, cv=3))
    for found, expected in zip(
        learning_curve(model, VIEWS, Y, cv=2, train_sizes=[0.5, 1.0]),
        learning_curve(other, X, Y, cv=2, train_sizes=[0.5, 1.0]),
        strict=True,
    ):
        assert_array_equal(found, expected)


def test_permuted_labels_are_not_put_in_order_again():
    options = {"cv": 2, "n_permutations": 2, "random_state": 0}
    expected = permutation_test_score(kw.MKLClassifier(SIDE_BY_SIDE), X, Y, **options)
    ordered = kw.Views(TABLES, ids=IDS)
    for views, y in ((VIEWS, Y), (ordered, LABELS)):
        found = permutation_test_score(kw.MKLClassifier(SPEC), views, y, **options)
        assert_array_equal(found[1], expected[1])
    with pytest.raises(ValueError, match=r"ids=y\.index"):
        permutation_test_score(kw.MKLClassifier(SPEC), kw.Views(TABLES), LABELS, **options)


def test_pipelines_and_searches():
    pipe = make_pipeline(
        kw.ViewTransformer({"rna": make_pipeline(StandardScaler(), PCA(2))}), kw.MKLClassifier(SPEC)
    )
    grid = {
        "viewtransformer__transformers__rna__pca__n_components": [1, 3],
        "mklclassifier__kernels__rna__0__gamma": [0.1],
    }
    search = GridSearchCV(pipe, grid, cv=2, n_jobs=1).fit(kw.Views(TABLES), LABELS)
    best = search.best_estimator_
    assert best[0].transformers_["rna"][-1].n_components == search.best_params_[next(iter(grid))]
    assert len(best.predict(TABLES)) == N


# -- preprocessing ------------------------------------------------------------------------------


def test_transformers_see_training_rows_that_have_the_view():
    gaps = {"rna": RNA.iloc[:20] + 1.0, "protein": PROTEIN}
    changed = kw.ViewTransformer({"rna": StandardScaler()}).fit(gaps)
    assert_allclose(changed.transformers_["rna"].mean_, A[:20].mean(axis=0) + 1.0)
    found = changed.transform(gaps)
    assert_array_equal(found.observed[:, 0], np.arange(N) < 20)
    assert np.isnan(found["rna"][20:]).all()
    assert_allclose(found["rna"][:20], StandardScaler().fit_transform(gaps["rna"]))
    assert found["protein"] is not None
    assert found.ids.tolist() == IDS
    named = kw.ViewTransformer(StandardScaler().set_output(transform="pandas")).fit_transform(TABLES)
    assert named.columns == kw.Views(TABLES).columns


def test_supervised_transformers_get_the_labels_of_their_rows():
    shuffled = {"rna": RNA[::-1], "protein": PROTEIN}
    found = kw.ViewTransformer({"rna": SelectKBest(k=1)}).fit(shuffled, LABELS)
    expected = SelectKBest(k=1).fit(A, Y)
    assert_allclose(found.transformers_["rna"].scores_, expected.scores_)
    with pytest.raises(ValueError, match="there is no view 'dna'"):
        kw.ViewTransformer({"dna": StandardScaler()}).fit(TABLES)
    with pytest.raises(ValueError, match="takes Views"):
        kw.ViewTransformer(StandardScaler()).fit(A)


def test_names_that_a_scaler_drops():
    model = kw.MKLClassifier({"rna": RBF(columns="g*"), "protein": RBF()})
    pipe = make_pipeline(kw.ViewTransformer(StandardScaler()), model)
    with pytest.raises(ValueError, match=r"\.set_output\(transform=\"pandas\"\)"):
        pipe.fit(TABLES, Y)
    pipe[0].set_params(transformers=StandardScaler().set_output(transform="pandas"))
    assert pipe.fit(TABLES, Y)[-1].model_.source.kernels[0].columns_.tolist() == [0, 1]
    plain = make_pipeline(StandardScaler(), kw.MKLClassifier([("g", RBF(), "g*")]))
    with pytest.raises(ValueError, match="set_output"):
        plain.fit(RNA, Y)


# -- what cannot be used ------------------------------------------------------------------------


def holed(rows=(), column=None, everywhere=False):
    table = RNA.copy()
    table.iloc[list(rows), slice(None) if column is None else column] = np.nan
    return {
        "rna": table,
        "protein": PROTEIN.where(~table.isna().all(axis=1), np.nan) if everywhere else PROTEIN,
    }


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (holed(range(4)), r"rna is missing in 4 of 30 samples; missing='complete' .* missing='mask'"),
        (
            {"rna": RNA[3:], "protein": PROTEIN[:-5]},
            "rna is missing in 3 of 30 samples and protein is missing in 5",
        ),
        (holed([2], everywhere=True), "1 of 30 samples have none of the views: leave out 'p02'"),
        (
            holed([2, 5], 1),
            "view 'rna': .*NaN in column 'g2' .2 of 30 rows., samples 'p02' and 'p05'.*imputer",
        ),
        ({"rna": RNA, "protein": PROTEIN.assign(p2="x")}, "view 'protein': .*'p2' holds text"),
        ({"rna": RNA.set_axis([*"aabc"], axis=1)}, "view 'rna': X has several columns named 'a'"),
        ({"rna": RNA.T, "protein": PROTEIN}, r"view 'rna' has none of the 30 samples.*pass table\.T"),
        ({"rna": RNA.reset_index(), "protein": PROTEIN}, r"'index' holds text.*Views\(tables, on=\.\.\.\)"),
    ],
)
def test_data_that_cannot_be_used(data, words):
    spec = {name: RBF() for name in data}
    with pytest.raises((ValueError, TypeError), match=words):
        kw.MKLClassifier(spec).fit(data, LABELS)
    with pytest.raises((ValueError, TypeError), match=words.split(":")[0] if "NaN" in words else "."):
        kw.MKLClassifier(spec).fit({name: TABLES[name] for name in data}, LABELS).predict(data)


@pytest.mark.parametrize("model", [kw.EmpiricalBayesClassifier("rbf"), kw.GMKLClassifier()])
def test_no_advice_that_cannot_be_followed(model):
    with pytest.raises(ValueError, match="rna is missing in 3 of 30 samples: leave those") as told:
        model.fit({"rna": RNA[3:], "protein": PROTEIN}, LABELS)
    assert "missing=" not in str(told.value)


def test_a_view_that_nobody_has_is_named_with_those_who_have_nothing():
    tables = {"rna": RNA * np.nan, "protein": PROTEIN[1:]}
    with pytest.raises(
        ValueError, match=r"leave out 'p00'\. No sample at all has 'rna': leave that out first"
    ):
        kw.MKLClassifier("rbf", missing="mask").fit(tables, LABELS)


def test_a_whole_table_of_labels_is_refused():
    y = pd.DataFrame({"subtype": Y, "age": np.arange(N)}, index=IDS)
    with pytest.raises(ValueError, match=r"y is a table with 2 columns, 'subtype' and 'age'.*y\['subtype'\]"):
        kw.MKLClassifier("rbf").fit(TABLES, y)


def test_a_list_of_tables_is_no_table():
    with pytest.raises(ValueError, match=r"X is a list of 2 tables: pass Views\(X\), or a dict"):
        kw.MKLClassifier(RBF()).fit([RNA, PROTEIN], Y)


def test_an_imputer_fills_single_values():
    pipe = make_pipeline(kw.ViewTransformer(SimpleImputer()), kw.MKLClassifier(SPEC))
    assert pipe.fit(holed([2, 5], 1), LABELS).score(TABLES, LABELS) > 0.8


@pytest.mark.parametrize(
    ("new", "words"),
    [
        ({"rna": RNA}, "X lacks the views 'protein'"),
        (X, "one table, and MKLClassifier was fitted on views, 'rna' and 'protein'"),
        ({"rna": RNA, "protein": PROTEIN[["p1", "p2"]]}, "'protein' has 2 columns, had 3 .*: it lacks 'p3'"),
        (
            {"rna": RNA[["g1", "h1", "g2", "h2"]], "protein": PROTEIN},
            r"column 1 is 'h1' in place of 'g2': pass .* table\[model.views_in_\['rna'\]\]",
        ),
    ],
)
def test_new_samples_come_as_those_of_the_fit(new, words):
    with pytest.raises(ValueError, match=words):
        kw.MKLClassifier(SPEC).fit(TABLES, Y).predict(new)


@pytest.mark.parametrize("missing", ["error", "mask", "complete"])
def test_unknown_views_are_refused(missing):
    model = kw.MKLClassifier("rbf", missing=missing).fit(TABLES, LABELS)
    for new in ({"rna": RNA, "Protein": PROTEIN}, {**TABLES, "protien": PROTEIN}):
        with pytest.raises(ValueError, match=r"view '[Pp]rot\w+' that .* Did you mean 'protein'\?"):
            model.predict(new)
    pipe = make_pipeline(kw.ViewTransformer(StandardScaler()), kw.MKLClassifier("rbf", missing=missing))
    with pytest.raises(ValueError, match="X has a view 'image' that MKLClassifier was not fitted on"):
        pipe.fit(TABLES, LABELS).predict({**TABLES, "image": PROTEIN})


def test_a_model_of_one_table_takes_one():
    model = kw.MKLClassifier(RBF()).fit(TABLES, Y).fit(X, Y)
    assert not hasattr(model, "views_in_")
    with pytest.raises(ValueError, match="was fitted on one table"):
        model.predict(TABLES)


# -- model files --------------------------------------------------------------------------------


@pytest.mark.parametrize("approximation", [None, "nystroem"])
def test_model_files(tmp_path, approximation):
    model = make_pipeline(
        kw.ViewTransformer({"rna": StandardScaler()}),
        kw.MKLClassifier(SPEC, approximation=approximation, rank=8, random_state=0),
    ).fit(kw.Views({"rna": RNA, "protein": sparse.csr_matrix(B)}, ids=IDS), Y)
    kw.save_model(model, tmp_path / "model.kw")
    loaded = kw.load_model(tmp_path / "model.kw")
    new = {"rna": RNA[:5], "protein": B[:5]}
    assert_allclose(loaded.decision_function(new), model.decision_function(new), rtol=1e-12)
    assert loaded[-1].views_in_ == model[-1].views_in_
    assert "p03" not in (tmp_path / "model.kw").read_bytes().decode("latin-1")  # IDs stay with their owner
