"""Every registered Gram engine has the properties of `kernelweave.testing`."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from kernelweave.gram import GRAMS, CachedGram, DenseGram
from kernelweave.gram.packed import PackedGram
from kernelweave.testing import check_gram
from kernelweave.testing.gram import GramCase, contract


@pytest.mark.parametrize("promise", contract.promises, ids=lambda promise: promise.__name__)
def test_contract(engine, promise, request):
    if promise.__name__ == "passes_count_what_is_read" and "low_rank" in request.node.name:
        pytest.skip("counts factors, which are read whole")
    promise(GramCase(engine))


def test_engines_and_their_parts_are_of_one_class(engine, matrices):
    gram = engine(list(matrices(6, 2)))
    assert GRAMS[gram.name] is type(gram)
    assert isinstance(gram, type(gram.subset(np.arange(3))))  # parts of a store are in memory


class WrongQuad(DenseGram):
    """Off in the sixth digit."""

    def quad(self, alpha, kernels=None):
        return super().quad(alpha, kernels) * (1.0 + 1e-6)


class WrongRows(DenseGram):
    """Forgets which rows were asked for."""

    def dot(self, weights, alpha, rows=None):
        return super().dot(weights, alpha, None if rows is None else np.sort(rows))


class Uncounted(CachedGram):
    """Reads matrices in secret."""

    n_passes = property(lambda self: 0.0, lambda self, value: None)


@pytest.mark.parametrize(
    ("cls", "title"),
    [
        (WrongQuad, "quad of any support"),
        (WrongRows, "dot is the product"),
        (Uncounted, "passes count what is read"),
    ],
)
def test_a_mistake_is_found_and_named(cls, title):
    with pytest.raises(AssertionError, match=f"^{cls.__name__} breaks the contract, {title}: "):
        check_gram(cls)


def test_engines_that_round_do_so_to_single_precision():
    check_gram(partial(PackedGram, dtype=np.float32), rtol=1e-5)


def test_engines_that_round_know_the_kernels(matrices, rng):
    """In double precision, on some samples and kernels too."""
    raw, scales = matrices(30, 9), rng.uniform(0.1, 3.0, size=9)
    gram = PackedGram(list(raw), scales, np.float32)
    samples, kernels = rng.permutation(30)[:12], np.array([7, 0, 3])
    part = gram.subset(samples).subset(kernels=kernels).subset(np.arange(5))
    for engine, chosen, those in ((gram, np.arange(30), np.arange(9)), (part, samples[:5], kernels)):
        alpha = rng.normal(size=len(chosen))
        Ks = (scales[:, None, None] * raw)[np.ix_(those, chosen, chosen)]
        assert engine.rounds
        found = engine.in_double().quad(alpha)
        np.testing.assert_allclose(found, np.einsum("i,mij,j->m", alpha, Ks, alpha), rtol=1e-12)
