"""Kernels of low rank in the estimators: which dictionary, what it costs, margins of models."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._typing import FloatArray
from ..gram import FeatureSource, Gram
from ..gram.lowrank import LowRankGram, resolve_approximation
from ..gram.lowrank.dictionary import LowRankDictionary
from ..kernels.base import positive_integer
from ..regularizers import Regularizer
from ..solvers import Problem
from ..solvers.base import State
from ..solvers.certificate import full_rank_gap

#: samples of low-rank kernels that are left out one by one: one of more than these changes little
MOST_LEFT_OUT = 5000


def check_approximation(estimator: Any, on_device: bool) -> None:
    """Refuse parameters that exclude `approximation`."""
    resolve_approximation(estimator.approximation)
    positive_integer(estimator.rank, "rank")
    if estimator._precomputed:
        raise ValueError(
            "approximation: precomputed kernels have all their entries already; pass approximation=None."
        )
    if estimator.gram not in ("auto", "dask") or on_device:
        raise ValueError(
            "approximation keeps factors in place of Gram matrices: pass gram='auto' (or 'dask') and "
            "device=None."
        )


def dictionary_of(gram: str, source: FeatureSource) -> type[LowRankDictionary]:
    """Where the factors are: here, or where the rows are."""
    if gram != "dask" and not getattr(source.X, "on_workers", False):
        return LowRankDictionary
    from ..gram.dask.low_rank import DaskLowRankDictionary

    return DaskLowRankDictionary


def gap_of(
    dictionary: Any, problem: Problem, regularizer: Regularizer, state: State, alpha: FloatArray
) -> float:
    """`full_rank_gap` of a solution; NaN where nothing is approximated."""
    if not isinstance(dictionary, LowRankDictionary):
        return np.nan
    if not problem.loss.separable:
        if len(alpha) > len(state.alpha):  # on some of the samples
            return np.nan
        alpha = problem.alpha_of(state.fitted + state.certificate.intercept)
    return full_rank_gap(problem, regularizer, state, dictionary.missing(alpha))


def too_many_to_leave_out(gram: Gram) -> bool:
    """Whether predictions of samples left out are those of the model itself."""
    return isinstance(gram, LowRankGram) and gram.n_samples > MOST_LEFT_OUT
