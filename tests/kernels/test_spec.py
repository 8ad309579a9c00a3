"""What may be passed as ``kernels=``."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.gaussian_process import kernels as gp
from sklearn.metrics.pairwise import cosine_similarity

from kernelweave.kernels import (
    RBF,
    FunctionKernel,
    GPKernel,
    Linear,
    Precomputed,
    Spectrum,
    auto,
    bandwidths,
    resolve_kernels,
)

X = np.random.RandomState(0).standard_normal((6, 4))


def names(spec):
    return [name for name, _ in resolve_kernels(spec, X)]


def types(spec):
    return [type(kernel) for _, kernel in resolve_kernels(spec, X)]


def test_one_kernel():
    assert names(RBF(0.1)) == ["RBF(gamma=0.1)"]
    assert names("rbf") == ["RBF(gamma=scale)"]
    assert types(gp.RBF(2.0)) == [GPKernel]
    assert types(cosine_similarity) == [FunctionKernel]
    assert names(cosine_similarity) == ["cosine_similarity"]
    assert types(np.eye(6)) == [Precomputed]


def test_lists():
    spec = [RBF(0.1), "linear", gp.DotProduct(), np.eye(6), cosine_similarity]
    assert types(spec) == types(tuple(spec)) == [RBF, Linear, GPKernel, Precomputed, FunctionKernel]


def test_pairs_and_triples():
    kernel = RBF(columns=[0])
    named = dict(resolve_kernels([("a", kernel), ("b", kernel, [1, 2]), ("c", "linear", slice(0, 2))], X))
    assert [k.columns for k in named.values()] == [[0], [1, 2], slice(0, 2)]
    assert kernel.columns == [0]


def test_triples_of_composites_and_matrices():
    matrix = Precomputed(np.eye(6))
    named = dict(
        resolve_kernels([("s", RBF() + Linear(), [3]), ("p", matrix, [1]), ("f", "auto", [0, 1])], X)
    )
    assert [k.columns for k in named["s"].kernels] == [[3], [3]]
    assert named["p"].columns == [1]
    assert named["p"].matrix is matrix.matrix
    assert matrix.columns is None
    assert all(k.columns == [0, 1] for name, k in named.items() if name.startswith("f: "))


def test_dicts():
    assert names({"a": RBF(), "b": "linear", 3: np.eye(6)}) == ["a", "b", "3"]
    assert names({"a": [RBF(0.1), RBF(1.0)], "b": Linear()}) == ["a: RBF(gamma=0.1)", "a: RBF(gamma=1)", "b"]
    assert names({"a": bandwidths([1.0, 2.0])}) == ["a: RBF(gamma=1)", "a: RBF(gamma=2)"]
    assert names({"a": [("x", RBF()), ("y", Linear())]}) == ["a: x", "a: y"]


def test_families():
    assert names("auto") == names(auto()) == [name for name, _ in auto().expand(X)]
    assert names(["auto", Linear()]) == [*names("auto"), "Linear"]


def test_names_are_unique():
    assert names([RBF(), RBF(), RBF()]) == [
        "RBF(gamma=scale)",
        "RBF(gamma=scale) (2)",
        "RBF(gamma=scale) (3)",
    ]
    assert names([Linear(), ("Linear", RBF())]) == ["Linear (2)", "Linear"]
    assert names([np.eye(6), np.eye(6)]) == ["Precomputed(6 x 6)", "Precomputed(6 x 6) (2)"]
    assert names(["auto", "auto"])[: len(names("auto"))] == names("auto")


def test_copies_leave_the_users_kernels_alone():
    kernel = RBF()
    spec = [kernel, kernel]
    resolved = [k for _, k in resolve_kernels(spec, X)]
    assert resolved[0] is not kernel
    assert resolved[0] is not resolved[1]
    resolved[0].fit(X)
    assert not hasattr(kernel, "gamma_")
    assert spec == [kernel, kernel]


def test_fitted_kernels_come_back_unfitted():
    assert not hasattr(resolve_kernels(RBF().fit(X), X)[0][1], "gamma_")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ([], r"kernels=\[\] is empty"),
        ({}, "is empty"),
        ({"a": []}, r"kernels\['a'\] is empty"),
        (3, "kernels: 3 is not a kernel, expected a kernel such as RBF"),
        ([None], "kernels: None is not a kernel"),
        ({"a": 3}, r"kernels\['a'\]: 3 is not a kernel"),
        ("gaussian", "kernels: 'gaussian' is not a kernel, the names are 'auto', 'chi2'"),
        ("precomputed", r"'precomputed' needs matrix, pass Precomputed\(matrix\)"),
        ("function", "needs function"),
        (RBF, r"RBF is a class, pass an object: RBF\(\.\.\.\)"),
        ([("a", RBF()), ("a", Linear())], r"the names \['a'\] are used twice"),
        ([("a", RBF(), [0], 1)], "not a .name, kernel. pair"),
        ([(RBF(), "a")], "not a .name, kernel. pair"),
        ([[RBF()], [Linear()]], "flat list"),
        (np.zeros((6, 4)), r"array of shape \(6, 4\) is not a Gram matrix"),
        (np.zeros((6, 6, 2)), "not a Gram matrix"),
    ],
)
def test_errors(spec, message):
    with pytest.raises(ValueError, match=message):
        resolve_kernels(spec, X)


def test_auto_names_the_columns_it_cannot_use():
    """Unless another kernel sees them, or the columns were chosen."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {"a": X[:, 0], "city": list("xyzxyz"), "b": X[:, 1], "day": pd.Timestamp("2024-03-01")}
    )
    for spec in ("auto", auto(), ["auto", RBF(columns=["a"])], {"numbers": "auto"}):
        with pytest.warns(
            UserWarning, match=r"leaves out 2 of 4: 'city', 'day'. Encode them .* or drop them"
        ):
            assert resolve_kernels(spec, frame)
    with pytest.warns(UserWarning, match="leaves out 1 of 4: 'day'"):
        resolve_kernels(["auto", ("text", Spectrum(2), ["city"])], frame)
    for spec in ([("few", "auto", ["a", "b"])], ["auto", ("rest", Spectrum(2), ["city", "day"])]):
        assert resolve_kernels(spec, frame)
    assert resolve_kernels("auto", frame[["a", "b"]])


def test_a_fit_on_a_table_with_text_says_what_it_leaves_out():
    pd = pytest.importorskip("pandas")
    import kernelweave as kw

    frame = pd.DataFrame({"a": X[:, 0], "city": list("xyzxyz")})
    with pytest.warns(UserWarning, match="'city'"):
        model = kw.MKLClassifier().fit(frame, [0, 1] * 3)
    assert len(model.predict(frame)) == 6  # and says it once
