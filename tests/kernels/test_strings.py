"""String kernels against their definitions."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from kernelweave.kernels import Linear, Spectrum, WeightedDegree

words = st.lists(st.text(alphabet="AB\u00e9\U0001f600", max_size=9), min_size=1, max_size=5)


def spectrum_by_definition(x, z, k):
    kmers = {s[i : i + k] for s in (x, z) for i in range(len(s) - k + 1)}
    count = lambda s, u: sum(s[i : i + k] == u for i in range(len(s) - k + 1))  # noqa: E731
    return sum(count(x, u) * count(z, u) for u in kmers)


def weighted_degree_by_definition(x, z, degree, shift):
    def match(d, i, j):
        return i + d <= len(x) and j + d <= len(z) and x[i : i + d] == z[j : j + d]

    total = 0.0
    for d in range(1, degree + 1):
        beta = 2 * (degree - d + 1) / (degree * (degree + 1))
        for place in range(max(len(x), len(z))):
            for s in range(shift + 1):
                both = match(d, place + s, place) + match(d, place, place + s)
                total += beta * both / (2 * (s + 1))
    return total


@given(words, words, st.integers(1, 4))
def test_spectrum(A, B, k):
    expected = [[spectrum_by_definition(x, z, k) for z in B] for x in A]
    np.testing.assert_array_equal(Spectrum(k=k)(A, B), expected)


@given(words, words, st.integers(1, 4), st.integers(0, 3))
def test_weighted_degree(A, B, degree, shift):
    expected = [[weighted_degree_by_definition(x, z, degree, shift) for z in B] for x in A]
    np.testing.assert_allclose(WeightedDegree(degree, shift)(A, B), expected, rtol=1e-12)


@given(words, st.sampled_from([Spectrum(2), WeightedDegree(3), WeightedDegree(2, shift=4)]))
def test_positive_semidefinite_on_unequal_lengths(A, kernel):
    K = kernel(A)
    assert np.linalg.eigvalsh(K).min() >= -1e-9 * max(1.0, K.max())
    np.testing.assert_allclose(kernel.diag(A), np.diagonal(K))


@pytest.mark.parametrize("shift", [1, 2, 5, 40])
def test_shift_weights_are_a_positive_definite_sequence(shift):
    frequencies = np.linspace(0, np.pi, 2001)
    orders = np.arange(1, shift + 1)
    assert (1 + (np.cos(np.outer(frequencies, orders)) / (orders + 1)).sum(axis=1)).min() > 0


@pytest.mark.parametrize("kernel", [Spectrum(2), WeightedDegree()])
def test_containers(kernel):
    strings = ["ACGT", "AC", "GATTACA"]
    expected = kernel(strings)
    frame = pd.DataFrame({"n": [1.0, 2.0, 3.0], "s": strings})
    for X in (np.array(strings), np.array(strings, dtype=object)[:, None], pd.Series(strings), frame[["s"]]):
        np.testing.assert_array_equal(kernel(X), expected)
    np.testing.assert_array_equal(kernel.with_columns("s")(frame), expected)
    np.testing.assert_array_equal(kernel.with_columns(1)(frame.to_numpy()), expected)


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([["A", "B"]], "given 2 columns: select one"),
        ([1.0, 2.0], "not a string"),
        (np.array(["A", None], dtype=object), "fill missing values"),
        (sparse.csr_matrix(np.eye(1)), "not a string"),
    ],
)
def test_bad_input(X, message):
    with pytest.raises(ValueError, match=message):
        Spectrum()(X)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (Spectrum(k=0), "k=0: expected an integer >= 1"),
        (WeightedDegree(degree=0), "degree=0"),
        (WeightedDegree(shift=-1), "shift=-1: expected an integer >= 0"),
    ],
)
def test_bad_parameters(kernel, message):
    with pytest.raises(ValueError, match=message):
        kernel(["AB"])


def test_strings_in_a_numeric_kernel():
    with pytest.raises(ValueError, match="not numbers"):
        Linear()(np.array(["AB"], dtype=object))


@pytest.mark.system
def test_importing_kernels_is_light():
    heavy = "{'numba', 'torch', 'matplotlib', 'dask'}"
    code = f"import sys, kernelweave.kernels; print(sorted({heavy} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
