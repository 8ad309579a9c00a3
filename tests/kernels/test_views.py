"""Several tables as one X: joined by IDs, sliced by rows, whatever the tables are made of."""

from __future__ import annotations

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.model_selection import KFold, train_test_split
from sklearn.utils import resample

from kernelweave.kernels import RBF, Linear, TaskKernel, Views, as_views, per_feature, resolve_kernels
from kernelweave.kernels.columns import resolve_columns, take_columns

IDS = [f"s{i}" for i in range(6)]
A = np.arange(12.0).reshape(6, 2)
B = -np.arange(18.0).reshape(6, 3)
RNA = pd.DataFrame(A, index=IDS, columns=["g1", "g2"])
PROTEIN = pd.DataFrame(B, index=IDS, columns=["p1", "p2", "p3"])


def same(views: Views, tables: dict[str, np.ndarray], ids: list[str] | None = None) -> None:
    assert views.names == list(tables)
    for name, expected in tables.items():
        found = views[name]
        found = found.toarray() if sparse.issparse(found) else np.asarray(found, dtype=float)
        np.testing.assert_array_equal(found, expected)
    assert (views.ids is None) if ids is None else (views.ids.tolist() == ids)


# -- joining ------------------------------------------------------------------------------------


def test_shuffled_tables_are_the_sorted_ones():
    order = np.random.default_rng(0).permutation(6)
    views = Views({"rna": RNA, "protein": PROTEIN.iloc[order]})
    same(views, {"rna": A, "protein": B}, IDS)
    assert views.observed.all()
    assert views.shape == (6, 5)
    assert len(views) == 6
    assert views["protein"].index.tolist() == IDS  # pandas users find their samples


def test_a_sample_of_one_table_is_a_gap_in_the_other():
    views = Views({"rna": RNA.iloc[:4], "protein": PROTEIN.iloc[2:]})
    assert views.ids.tolist() == [*IDS[:4], *IDS[4:]]
    np.testing.assert_array_equal(views.observed, [[1, 0]] * 2 + [[1, 1]] * 2 + [[0, 1]] * 2)
    assert views.patterns.tolist() == ["rna"] * 2 + ["rna+protein"] * 2 + ["protein"] * 2
    assert views.lacking == ["rna is missing in 2 of 6 samples", "protein is missing in 2 of 6 samples"]
    assert np.isnan(views["rna"].iloc[4:]).all(axis=None)
    np.testing.assert_array_equal(views["protein"].iloc[2:], B[2:])


def test_gaps_leave_numbers_numbers():
    flags = pd.DataFrame({"flag": [True, False], "count": [1, 2]}, index=["s0", "s1"])
    views = Views({"rna": RNA, "flags": flags})
    assert [dtype.kind for dtype in views["flags"].dtypes] == ["f", "f"]
    np.testing.assert_array_equal(views.filled()["flags"].iloc[[1, 5]], [[0.0, 2.0], [1.0, 1.0]])
    counts = Views({"rna": RNA, "counts": np.arange(6)[:, None]}, ids=["s1", "s0"])
    np.testing.assert_array_equal(counts["counts"].ravel(), [1, 0])


def test_the_order_can_be_asked_for():
    views = Views({"rna": RNA, "protein": PROTEIN[::-1]}, ids=["s3", "s0"])
    same(views, {"rna": A[[3, 0]], "protein": B[[3, 0]]}, ["s3", "s0"])
    assert views.ordered
    assert not Views({"rna": RNA}).ordered


@pytest.mark.parametrize("kind", ["polars", "pyarrow", "pandas"])
def test_a_column_of_ids(kind):
    frame = PROTEIN.rename_axis("sample").reset_index().iloc[[5, 0, 1, 2]]
    if kind == "polars":
        frame = pytest.importorskip("polars").DataFrame(frame.to_dict("list"))
    elif kind == "pyarrow":
        frame = pytest.importorskip("pyarrow").table(frame.to_dict("list"))
    views = Views({"rna": RNA, "protein": frame}, on="sample")
    assert views.shape == (6, 5)
    assert views.columns[2:] == ["protein: p1", "protein: p2", "protein: p3"]
    np.testing.assert_array_equal(views.observed[:, 1], [1, 1, 1, 0, 0, 1])
    expected = np.where(views.observed[:, [1]], B, np.nan)
    np.testing.assert_array_equal(np.asarray(views["protein"], dtype=float), expected)
    np.testing.assert_array_equal(np.asarray(views[[5, 3]]["protein"], dtype=float), expected[[5, 3]])


def test_rows_without_any_value_are_gaps():
    table, holed = A.copy(), sparse.csr_array(B + 1.0)
    table[2] = np.nan
    table[3, 0] = np.nan  # one value is no gap
    holed.data[holed.indptr[4] : holed.indptr[5]] = np.nan
    text = np.array([["ACG"], [None], ["C"], ["G"], ["T"], ["A"]], dtype=object)
    views = Views({"a": table, "b": holed, "dna": text, "n": pd.DataFrame({"x": pd.array([1] * 5 + [None])})})
    expected = np.ones((6, 4), dtype=bool)
    expected[[2, 4, 1, 5], [0, 1, 2, 3]] = False
    np.testing.assert_array_equal(views.observed, expected)
    filled = views.filled()
    np.testing.assert_array_equal(filled["a"][2], A[0])
    assert filled["dna"][1, 0] == "ACG"
    assert filled["n"].iloc[5, 0] == 1
    np.testing.assert_array_equal(filled.observed, expected)


def test_a_sparse_table_with_ids_gets_rows_of_zeros():
    class Observations:  # as AnnData has them
        obs_names = pd.Index(IDS[:4])
        var_names = pd.Index(["p1", "p2", "p3"])
        X = sparse.csr_matrix(B[:4])

    views = Views({"rna": RNA, "protein": Observations()})
    same(views, {"rna": A, "protein": np.where(np.arange(6)[:, None] < 4, B, 0.0)}, IDS)
    np.testing.assert_array_equal(views.observed[:, 1], np.arange(6) < 4)


def test_objects_of_the_omics_tools():
    class Observations:
        obs_names, var_names, X = pd.Index(IDS[::-1]), pd.Index(["p1", "p2", "p3"]), B[::-1]

    class Modes:
        obs_names = pd.Index(IDS)
        mod = {"rna": RNA, "protein": Observations()}  # noqa: RUF012

    views = as_views(Modes())
    same(views, {"rna": A, "protein": B}, IDS)
    assert views.columns == ["rna: g1", "rna: g2", "protein: p1", "protein: p2", "protein: p3"]
    same(as_views(Observations(), pd.Series(range(6), index=IDS)), {"X": B}, IDS)


@pytest.mark.filterwarnings("ignore::FutureWarning:mudata")
def test_anndata_and_mudata():
    anndata = pytest.importorskip("anndata", reason="needs anndata: kernelweave[omics]")
    mudata = pytest.importorskip("mudata", reason="needs mudata: kernelweave[omics]")
    both = mudata.MuData({"rna": anndata.AnnData(RNA), "protein": anndata.AnnData(PROTEIN[::-1])})
    views = Views(both, ids=IDS)
    same(views, {"rna": A, "protein": B}, IDS)


def test_columns_of_two_levels_are_views():
    views = as_views(pd.concat({"rna": RNA, "protein": PROTEIN}, axis=1))
    same(views, {"rna": A, "protein": B}, IDS)
    mixed = pd.concat({"rna": RNA, "protein": PROTEIN}, axis=1).iloc[:, [2, 0, 4, 1, 3]]
    same(as_views(mixed), {"protein": B[:, [0, 2, 1]], "rna": A}, IDS)
    assert as_views(RNA) is RNA


def test_tables_without_ids_are_taken_row_by_row():
    same(Views([A, pd.DataFrame(B)]), {"view 0": A, "view 1": B})
    same(Views({"a": A, "b": PROTEIN}), {"a": A, "b": B}, IDS)  # beside IDs of one order
    same(Views({"a": A, "b": B}, ids=IDS), {"a": A, "b": B}, IDS)
    same(Views({"a": A, "b": PROTEIN}, ids=["s5", "s0"]), {"a": A[[5, 0]], "b": B[[5, 0]]}, ["s5", "s0"])


def test_numbers_that_count_rows_are_ids_beside_other_numbers():
    whole, part = pd.DataFrame(A), pd.DataFrame(B).drop(index=[1, 4])
    views = Views({"a": whole, "b": part})
    np.testing.assert_array_equal(views.observed[:, 1], [1, 0, 1, 1, 0, 1])
    shuffled = pd.DataFrame(B).iloc[[3, 1, 0, 2, 5, 4]]
    same(Views({"a": whole, "b": shuffled}), {"a": A, "b": B}, list(range(6)))


@pytest.mark.parametrize(
    ("tables", "options", "words"),
    [
        ({"a": A, "b": B[:4]}, {}, "'a' has 6 rows and 'b' has 4 rows, and 'a' and 'b' have no sample IDs"),
        ({"a": RNA, "b": B[:4]}, {}, "'b' has no sample IDs to join them by"),
        ({"a": RNA, "b": PROTEIN[::-1], "c": A}, {}, "'a' and 'b' have sample IDs, in different orders"),
        ({"a": RNA.set_axis(["s0", "s1", "s0", "s2", "s0", "s1"])}, {}, r"2 of 3 IDs .* 's0' \(3 times\)"),
        ({"a": RNA.set_axis(["s0", None, "s2", "s3", "s4", "s5"])}, {}, "1 rows have no ID"),
        (
            {"a": RNA, "b": PROTEIN.set_axis(range(10, 16))},
            {},
            "'a' has none of the 6 .* 's0', .* 10, 11, 12",
        ),
        ({"a": RNA}, {"ids": ["s0", "t1", "t2"]}, "2 of 3 samples are in no table, such as 't1', 't2'"),
        ({"a": A}, {"ids": IDS[:3]}, "ids has 3 entries"),
        (
            {"a": RNA.assign(sample=IDS), "b": PROTEIN},
            {"on": "smaple"},
            "on='smaple': no table has such .* 'sample'",
        ),
    ],
)
def test_what_cannot_be_joined(tables, options, words):
    with pytest.raises(ValueError, match=words):
        Views(tables, **options)


@pytest.mark.parametrize(
    ("tables", "words"),
    [
        ({}, "tables is empty"),
        (A, "tables is a ndarray: pass a dict"),
        ({"a": A[:, :0]}, r"shape \(6, 0\)"),
        ({1: A, "1": B}, "several views have the same name"),
    ],
)
def test_what_are_no_tables(tables, words):
    with pytest.raises(ValueError, match=words):
        Views(tables)


# -- labels -------------------------------------------------------------------------------------


def test_rows_go_to_labels_with_ids_unless_their_order_was_asked_for():
    views, y = Views({"rna": RNA, "protein": PROTEIN}), pd.Series([1, 0, 1], index=["s4", "s0", "s2"])
    same(views.in_order_of(y), {"rna": A[[4, 0, 2]], "protein": B[[4, 0, 2]]}, ["s4", "s0", "s2"])
    assert views.in_order_of(y.to_numpy()) is views
    assert views.in_order_of(pd.Series(range(6))) is views  # an index that counts
    ordered = Views({"rna": RNA}, ids=["s0", "s2", "s4"])
    assert ordered.in_order_of(y) is ordered
    plain = Views([A])
    assert plain.in_order_of(y) is plain
    with pytest.raises(ValueError, match=r"labels of 1 samples \(of 2\) .* such as 't'; .* 's0', 's1', 's2'"):
        views.in_order_of(pd.Series([1, 0], index=["s4", "t"]))
    with pytest.raises(ValueError, match="more than once"):
        views.in_order_of(pd.Series([1, 0], index=["s4", "s4"]))
    with pytest.raises(ValueError, match=r"sliced by position.*Views\(tables, ids=y\.index\)\.$"):
        views.in_order_of(pd.Series([1, 0], index=["s4", "t"]))
    with pytest.raises(ValueError, match=r"in the same order, pass y\.to_numpy\(\)\.$"):
        views.in_order_of(pd.Series([1, 0], index=["u", "t"]))


def test_a_series_is_a_column_with_ids():
    column = RNA.iloc[::-1, 0]
    same(Views({"a": RNA, "b": column}), {"a": A, "b": A[:, :1]}, IDS)


# -- rows ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "key",
    [
        slice(1, 4),
        slice(None, None, -2),
        [3, 0, 0],
        np.array([-1, 2]),
        np.arange(6) % 2 == 0,
        (np.array([1, 2]), ...),
        3,
    ],
)
def test_rows(key):
    expected = np.atleast_1d(np.arange(6)[key[0] if isinstance(key, tuple) else key])
    views = Views({"rna": RNA, "b": B, "c": sparse.csr_matrix(B), "d": pd.DataFrame(A)}, ids=IDS)
    own = {"rna": A, "b": B, "c": B, "d": A}
    part = views[key]
    same(part, {name: table[expected] for name, table in own.items()}, [IDS[i] for i in expected])
    assert part.ordered


def test_scikit_learn_slices_it(tmp_path):
    views, y = Views({"rna": RNA, "b": B}), np.arange(6) % 2
    left, right, _, _ = train_test_split(views, y, test_size=2, random_state=0)
    assert sorted([*left.ids, *right.ids]) == IDS
    assert isinstance(left, Views)
    assert len(resample(views, n_samples=9, random_state=0)) == 9
    assert [len(views[test]) for _, test in KFold(3).split(views, y)] == [2, 2, 2]
    same(pickle.loads(pickle.dumps(views)), {"rna": A, "b": B}, IDS)
    joblib.dump(views, tmp_path / "views")
    same(joblib.load(tmp_path / "views"), {"rna": A, "b": B}, IDS)
    with pytest.raises(TypeError, match="ViewTransformer"):
        np.asarray(views)


def test_other_rows_are_refused():
    with pytest.raises(IndexError, match="row 6 of a table of 6"):
        Views([A])[[6]]
    with pytest.raises(ValueError, match=r"there is no view 'rma'.* Did you mean 'rna'"):
        Views({"rna": RNA})["rma"]


# -- columns and kernels ------------------------------------------------------------------------


def test_columns_of_one_view_and_of_several():
    views = Views({"rna": RNA, "b": sparse.csr_matrix(B)})
    assert take_columns(views, np.arange(2)) is views["rna"]
    np.testing.assert_array_equal(take_columns(views, np.array([4, 2])).toarray(), B[:, [2, 0]])
    np.testing.assert_array_equal(take_columns(views, np.array([4, 0, 2])), np.c_[B[:, 2], A[:, 0], B[:, 0]])
    np.testing.assert_array_equal(resolve_columns("rna: *", views), [0, 1])
    assert views.columns == ["rna: g1", "rna: g2", "b: x0", "b: x1", "b: x2"]
    np.testing.assert_array_equal(views.joined(), np.hstack([A, B]))


def named(spec, views):
    return {name: kernel for name, kernel in resolve_kernels(spec, views)}


def test_kernels_are_named_after_views_and_see_them():
    views = Views({"rna": RNA, "protein": PROTEIN})
    found = named({"rna": [RBF(), Linear(columns="g2")], "protein": per_feature(columns=["p3", "p1"])}, views)
    assert {name: kernel.columns for name, kernel in found.items()} == {
        "rna: RBF(gamma=scale)": slice(0, 2),
        "rna: Linear[g2]": [1],
        "protein: p3": [4],
        "protein: p1": [2],
    }
    assert [views.view_of(kernel) for kernel in found.values()] == [0, 0, 1, 1]


def test_kernels_without_a_view_are_for_every_view():
    views = Views({"a": RNA, "b": PROTEIN})
    assert list(named(RBF(), views)) == ["a", "b"]
    assert list(named([RBF(), Linear()], views)) == [
        "a: RBF(gamma=scale)",
        "a: Linear",
        "b: RBF(gamma=scale)",
        "b: Linear",
    ]
    triples = [("wide", RBF(0.1), "b"), ("b", Linear()), Linear()]
    assert list(named(triples, views)) == ["wide", "b", "a: Linear", "b: Linear"]
    auto = list(named("auto", views))
    assert auto[:2] == ["a: linear", "a: rbf scale*0.1"]
    assert auto[-1] == "b: rbf p3"


def test_combinations_and_tasks_go_to_their_view():
    views = Views({"a": A, "b": np.c_[B, [0, 0, 0, 1, 1, 1]]})
    spec = {"b": [2.0 * RBF(columns=[0]) + Linear() * Linear(columns=-1), TaskKernel(Linear(), 3, 1)]}
    table = np.asarray(views["b"])
    for (_, kernel), own in zip(resolve_kernels(spec, views), spec["b"], strict=True):
        np.testing.assert_allclose(kernel.fit(views)(views), own.fit(table)(table), rtol=1e-12)
        assert views.view_of(kernel) == 1


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"rma": RBF()}, "'rma' is not a view of X, which has 'rna' and 'b'. Did you mean 'rna'"),
        ([("wide", RBF(), "c")], "'c' is not a view"),
        ([("wide", RBF())], "'wide' is not a view"),
        ([(RBF(), "rna")], "pair or a"),
        ({"b": RBF(columns="g*")}, r"view 'b': columns=\['g\*'\] are names, but X has none.*set_output"),
        ({"rna": []}, "view 'rna': kernels"),
    ],
)
def test_kernels_of_no_view(spec, words):
    with pytest.raises(ValueError, match=words):
        resolve_kernels(spec, Views({"rna": RNA, "b": B}))
