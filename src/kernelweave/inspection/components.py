"""What each kernel adds to a prediction: f(x) = b + sum_m f_m(x)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from typing import Any

import numpy as np

from .._typing import FloatArray
from ..kernels import WeightedSum
from ._models import data_for, fitted_model

#: bytes of kernel values of one block of rows
BLOCK_BYTES = 1 << 26

#: a kernel and its component: f_m on a block of rows, shape (n_block, n_functions)
Component = tuple[int, Callable[[Any], FloatArray]]


def contributions(model: Any, X: Any) -> FloatArray:
    """What each kernel adds to the value of every sample.

        f(x) = b + sum_m f_m(x),    f_m(x) = d_m sum_i alpha_i k_m(x, x_i)

    with the normalised kernels k_m, the intercept b = `intercept_` and f the decision value (of a
    regressor: the prediction). A centred kernel (``normalize="center"``) has components of mean zero
    over the training samples; without centring they may differ by constants that cancel in the sum. Where
    every kernel is linear, `intercept_` belongs to `coef_` and holds such constants too.

    Parameters
    ----------
    model : fitted estimator, Pipeline ending in one, or search
        Anything that learns kernel weights. For empirical Bayes f is the posterior mean of the latent
        function, before a classifier moderates it; for `GMKLClassifier` and `GMKLRegressor` the kernel
        must be a `WeightedSum`.
    X : array-like, sparse matrix or DataFrame of shape (n, n_features), or kernels
        As in the model's ``predict``.

    Returns
    -------
    parts : ndarray of shape (n, M), or (n_functions, n, M)
        The latter for models of several functions: classes, pairs of classes (one-vs-one), outputs.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> import kernelweave as kw
    >>> from kernelweave.inspection import contributions
    >>> from kernelweave.kernels import RBF, per_feature
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = kw.MKLClassifier(per_feature(RBF())).fit(X, y == 1)
    >>> parts = contributions(clf, X)
    >>> parts.shape
    (150, 4)
    >>> bool(np.allclose(parts.sum(axis=1) + clf.intercept_, clf.decision_function(X)))
    True
    """
    parts = components(fitted_model(model), data_for(model, X))
    return parts[0] if len(parts) == 1 else parts


def components(model: Any, X: Any) -> FloatArray:
    """`contributions` of a bare model, always of shape (n_functions, n, M)."""
    if hasattr(model, "kernel_"):
        return _generalized(model, X)
    table, _ = model._validate(X, reset=False)
    values = model._values(table)
    source, parts = _parts(model)
    # centred kernels and processes are evaluated on more training samples than the support
    step = max(1, BLOCK_BYTES // (8 * max(source.n_samples, 1)))
    out = np.zeros((_n_functions(model), values.shape[0], len(model.kernel_names_)))
    for start in range(0, values.shape[0], step):
        rows = slice(start, min(start + step, values.shape[0]))
        block = source.rows(values, rows)
        for m, component in parts:
            out[:, rows, m] = component(block).T
    return out


def intercept_of(model: Any) -> FloatArray:
    """b of every function, what the components leave of it; shape (n_functions,)."""
    if hasattr(model, "_process"):
        return np.concatenate([posterior.intercept for posterior in model._process.posteriors])
    return model._intercepts[model.path_.n_selected] if hasattr(model, "path_") else model._intercepts


def _n_functions(model: Any) -> int:
    return len(intercept_of(model))


def _parts(model: Any) -> tuple[Any, list[Component]]:
    """Where kernel values come from, and the components, by the way in which the model predicts."""
    if hasattr(model, "_process"):
        return model._process.source, list(_process_parts(model._process))
    expansion = model._expansion
    parts = _staged_parts(model) if hasattr(expansion, "sets") else _expansion_parts(expansion)
    return expansion.source, list(parts)


def _expansion_parts(expansion: Any) -> Iterator[Component]:
    """Of the terms of an `Expansion`; those of many kernels together are taken apart."""
    for term in expansion.terms:
        if hasattr(term, "m"):
            yield term.m, partial(term, expansion.source)
        else:
            yield from _split(term, expansion.source)


def _split(term: Any, source: Any) -> Iterator[Component]:
    """The kernels of a `SumTerm`, one at a time."""
    offsets = term.offset[None] if len(term.kernels) == 1 else term.offsets
    if offsets is None:
        if np.any(term.offset):
            raise ValueError(
                "the model keeps only the sum of the constants of its centred kernels: fit it again, or "
                "use normalize='variance'."
            )
        offsets = np.zeros((len(term.kernels), len(term.offset)))
    for k, factor, offset in zip(term.kernels, term.factors, offsets, strict=True):
        m = int(source.together[k])
        yield m, partial(_linear, source, m, term.coef * factor, offset)


def _linear(source: Any, m: int, coef: FloatArray, offset: FloatArray, X: Any) -> FloatArray:
    return np.asarray(source.cross(m, X) @ coef + offset)


def _staged_parts(model: Any) -> Iterator[Component]:
    """Of the model chosen on a greedy path: the same expansion with one kernel."""
    size = model.path_.n_selected
    for m in model.selected_.tolist():
        alone = copy(model._expansion)
        alone.sets, alone.alphas = [(m,)], model._expansion.alphas[[size]]
        yield m, partial(_first_stage, alone)


def _first_stage(expansion: Any, X: Any) -> FloatArray:
    return np.asarray(expansion(X, [0])[:, 0])


def _process_parts(process: Any) -> Iterator[Component]:
    """Of the posterior means of Gaussian processes: the same process with one kernel."""
    intercept = np.concatenate([posterior.intercept for posterior in process.posteriors])
    for k, m in enumerate(process.live.tolist()):
        alone = copy(process)
        alone.live, alone.rules, alone.factors = (
            process.live[[k]],
            [process.rules[k]],
            process.factors[:, [k]],
        )
        yield m, partial(_mean, alone, intercept)


def _mean(process: Any, intercept: FloatArray, X: Any) -> FloatArray:
    return np.asarray(process(X)[0] - intercept)


def _generalized(model: Any, X: Any) -> FloatArray:
    """Of a generalized MKL model: d_m k_m(x, .; e_m) alpha, e_m the kernel's own parameters."""
    kernel = model.kernel_
    if not isinstance(kernel, WeightedSum):
        raise ValueError(
            f"{type(model).__name__} with {type(kernel).__name__} is not a sum of kernels, so its prediction "
            "has no components: use kernel=WeightedSum([...])."
        )
    values = model._numbers(X, reset=False)
    out = np.zeros((_n_functions(model), len(values), len(kernel.kernels_)))
    first = 0
    for d, alpha in zip(model._weights, model._alphas, strict=True):
        functions = slice(first, first + alpha.shape[1])
        for m, (child, own) in enumerate(zip(kernel.kernels_, kernel._parts(d), strict=True)):
            if d[m] != 0.0 and len(alpha):
                out[functions, :, m] = d[m] * (child(values, model._support_rows, own) @ alpha).T
        first = functions.stop
    return out
