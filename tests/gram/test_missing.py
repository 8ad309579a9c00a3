"""Kernels of samples that lack views: identities of masking and completion, on tiny problems."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.gram import Dictionary, FoldSource
from kernelweave.gram.missing import GapSource, left_out_errors, with_gaps
from kernelweave.gram.sources import Gaps
from kernelweave.kernels import RBF, Linear

VIEWS = ["a", "b", "c", "c"]


def problem(n=40, share=0.3, seed=0):
    """Matrices of four kernels on three views of the same samples, and which samples have them."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 3))
    tables = [Z @ rng.normal(size=(3, 4)) + 0.3 * rng.normal(size=(n, 4)) for _ in range(3)]
    kernels = [(RBF(), 0), (RBF(), 1), (RBF(), 2), (Linear(), 2)]
    matrices = [kernel.fit(tables[v])(tables[v]) for kernel, v in kernels]
    observed = rng.random((n, 3)) > share
    observed[~observed.any(axis=1), 0] = True
    return matrices, observed[:, [0, 1, 2, 2]]


def source_of(matrices, observed, rows):
    return FoldSource(matrices, ["a", "b", "c1", "c2"], rows, Gaps(VIEWS, observed))


def test_error_of_leaving_one_out_is_that_of_the_embeddings_themselves():
    """Against regressions without each sample, in an explicit feature space."""
    rng = np.random.default_rng(1)
    Phi, B = rng.normal(size=(12, 5)), rng.normal(size=(12, 4))
    S = B @ B.T
    ridges = np.array([0.1, 2.0])
    errors = left_out_errors(S, Phi @ Phi.T, ridges)
    for ridge, error in zip(ridges, errors, strict=True):
        total = 0.0
        for i in range(12):
            rest = np.delete(np.arange(12), i)
            a = np.linalg.solve(S[np.ix_(rest, rest)] + ridge * np.eye(11), S[rest, i])
            total += float(((Phi[i] - a @ Phi[rest]) ** 2).sum())
        assert error == pytest.approx(total, rel=1e-10)


@pytest.mark.parametrize("missing", ["mask", "margin", "complete"])
def test_matrices_are_kernels_centred_on_those_who_have_them(missing):
    matrices, observed = problem()
    source = GapSource(source_of(matrices, observed, np.arange(40)), missing, "variance")
    for m in range(4):
        K, own = source.train(m), np.flatnonzero(observed[:, m])
        part = K[np.ix_(own, own)]
        assert np.linalg.eigvalsh(K)[0] > -1e-12
        assert np.abs(part.sum(axis=0)).max() < 1e-12
        assert part.diagonal().mean() == pytest.approx(1.0)
        if missing != "complete":
            assert not np.delete(K, own, axis=0).any()
    assert len(source.names) == (7 if missing == "mask" else 4)


def test_completion_is_the_conditional_mean_of_its_definition():
    matrices, observed = problem()
    base = source_of(matrices, observed, np.arange(40))
    masked, whole = (GapSource(base, missing, "variance") for missing in ("margin", "complete"))
    own, rest = np.flatnonzero(observed[:, 2]), np.flatnonzero(~observed[:, 2])
    S = masked.train(0) + masked.train(1)  # the other views have one kernel of variance 1 each
    ridge = whole.completions["c"].ridge
    A = np.zeros((40, len(own)))
    A[own] = np.eye(len(own))
    A[rest] = np.linalg.solve(S[np.ix_(own, own)] + ridge * np.eye(len(own)), S[np.ix_(own, rest)]).T
    for m in (2, 3):  # one completion for all kernels of a view
        expected = A @ masked.train(m)[np.ix_(own, own)] @ A.T
        np.testing.assert_allclose(whole.train(m), expected, atol=1e-12)


def test_a_sample_of_weight_two_completes_as_two_samples_do():
    matrices, observed = problem(n=20)
    rows = np.arange(20)
    weight = np.ones(20)
    weight[3] = 2.0
    twice = np.append(rows, 3)
    one = GapSource(source_of(matrices, observed, rows), "complete", "variance", weight)
    two = GapSource(source_of(matrices, observed, twice), "complete", "variance")
    for m in range(4):
        own, rest = np.flatnonzero(observed[:, m]), np.flatnonzero(~observed[:, m])
        S = sum(one.shares[k] * masked_of(one, k) for k in range(4) if VIEWS[k] != VIEWS[m])
        ridge = two.completions[VIEWS[m]].ridge / weight[own]
        A = np.linalg.solve(S[np.ix_(own, own)] + np.diag(ridge), S[np.ix_(own, rest)]).T
        K = one.train(m)[np.ix_(own, own)]
        np.testing.assert_allclose(A @ K @ A.T, two.train(m)[np.ix_(rest, rest)], atol=1e-10)


def masked_of(source, m):
    has = source.observed[:, m]
    return source.train(m) * np.outer(has, has)


@pytest.mark.parametrize("missing", ["mask", "margin", "complete"])
@pytest.mark.parametrize("gaps", [True, False])
def test_a_training_sample_is_predicted_by_its_row_of_the_matrices(missing, gaps):
    """The functions of a predictor on training samples are K alpha, whichever views they have."""
    matrices, observed = problem()
    observed[:30] |= not gaps
    rng, rows = np.random.default_rng(0), np.arange(30)
    source = source_of(matrices, observed, rows)
    dictionary = with_gaps(Dictionary, source, missing, "variance")
    M = len(dictionary.names)
    weights, alpha = rng.random((2, M)), rng.normal(size=(30, 2))
    b = np.array([0.5, 0.0])
    predictor = dictionary.predictor(weights, alpha, b)
    expected = np.column_stack([dictionary.gram.dot(weights[j], alpha[:, [j]])[:, 0] for j in range(2)])
    np.testing.assert_allclose(predictor(rows), expected + b, atol=1e-10)
    parts = predictor.components(np.arange(30, 40))  # some of which lack views
    np.testing.assert_allclose(parts.sum(axis=2).T + b, predictor(np.arange(30, 40)), atol=1e-10)


@pytest.mark.parametrize("missing", ["mask", "complete"])
def test_lacking_a_view_that_training_samples_have_costs_its_mean_or_its_prediction(missing):
    """A new sample without a view gets the mean of that component, or its regression on the others."""
    matrices, observed = problem()
    observed[:30] = True
    source = source_of(matrices, observed, np.arange(30))
    dictionary = with_gaps(Dictionary, source, missing, "variance")
    alpha = np.random.default_rng(0).normal(size=(30, 1))
    weights = np.ones((1, 4))
    component = dictionary.gram.dot(np.eye(4)[0], alpha)[:, 0]
    lacks = np.flatnonzero(~observed[:, 0])
    found = dictionary.predictor(weights, alpha, np.zeros(1)).components(lacks)[0, :, 0]
    if missing == "mask":
        np.testing.assert_allclose(found, component.mean(), atol=1e-10)
        return
    # centring and scale are those of the training samples, as are the regressions
    fitted = dictionary.source
    S_train = sum(fitted.shares[m] * fitted.matrices[m] for m in (1, 2, 3))
    solved = np.linalg.solve(
        S_train + fitted.completions["a"].ridge * np.eye(30), component - component.mean()
    )
    for k, i in enumerate(lacks):
        s = np.zeros(30)
        for m in (1, 2, 3):
            if observed[i, m]:
                rule = fitted.rules[m]
                s += fitted.shares[m] * rule.scale_ * rule.cross(matrices[m][[i], :30])[0]
        assert found[k] == pytest.approx(component.mean() + s @ solved, abs=1e-9)


def test_a_view_that_nobody_has_is_an_error_with_its_name():
    matrices, observed = problem()
    observed[:, 1] = False
    with pytest.raises(ValueError, match="'b' is missing in 40 of 40 training samples"):
        GapSource(source_of(matrices, observed, np.arange(40)), "mask", "variance")


def test_the_sphere_is_refused():
    matrices, observed = problem()
    with pytest.raises(ValueError, match=r"normalize='spherical'.*normalize='variance'"):
        GapSource(source_of(matrices, observed, np.arange(40)), "mask", "spherical")
