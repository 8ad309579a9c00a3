"""What two features add together that neither adds alone: exact Shapley interactions, on request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from .._registry import did_you_mean
from .._typing import FloatArray
from .._words import quoted
from ..gram.games import Expansion, merged
from ..kernels.base import in_double
from ..kernels.columns import as_table, is_views, numeric_positions, take_columns
from ._models import fitted_model, inputs_for
from .explanation import _column_names, background_for, device_for


@dataclass(frozen=True)
class Interactions:
    """Interactions of some features with all others; `interactions` makes it.

    Attributes
    ----------
    values : ndarray of shape (n, n_asked, n_features), or (n_functions, n, n_asked, n_features)
        values[i, a, g]: what features a and g add to sample i together, beyond what each adds without the
        other; at g = a what a adds by itself, its attribution minus half of its interactions.
    features : list of str
        The features asked for.
    feature_names : list of str
    """

    values: FloatArray
    features: list[str]
    feature_names: list[str]

    def frame(self, sample: int = 0, function: int = 0) -> Any:
        """Interactions of one sample as a pandas DataFrame: rows are the features asked for."""
        import pandas as pd

        values = self.values if self.values.ndim == 4 else self.values[None]
        return pd.DataFrame(values[function, sample], index=self.features, columns=self.feature_names)


def interactions(
    model: Any,
    X: Any,
    features: Sequence[Any],
    background: Any = None,
    *,
    background_weight: Any = None,
    feature_names: Any = None,
    device: Any = None,
) -> Interactions:
    """Exact Shapley interactions of features: what two of them add together.

    The interaction of f and g is the mean of v(S + f + g) - v(S + f) - v(S + g) + v(S) over sets S of the
    other features, where every size of S counts equally, and v(S) is the value of the model with the sample's
    features in S and a background sample's elsewhere, averaged over the background. It is the attribution of
    g where f has the value of the sample, minus the attribution of g where f has the value of the background
    sample,

        I_fg = phi_g(v with f) - phi_g(v without f),     phi_f = main_f + 1/2 sum_{g != f} I_fg

    so every kernel that `explain` takes apart has them, at the cost of one explanation for each sample and
    each background sample. They are 0 for two features that the model only adds up.

    Parameters
    ----------
    model : fitted estimator, Pipeline ending in one, or search
    X : array-like, DataFrame or Views of shape (n, n_features)
        A few samples, with columns of numbers.
    features : sequence of str or int
        Whose interactions to compute: names, or columns that the estimator sees.
    background : same, of shape (n_background, n_features), optional
        As in `explain`; 100 rows of X at most by default.
    background_weight : array-like of shape (n_background,), optional
    feature_names : sequence of str, optional
        As in `explain`.
    device : str, optional
        As in `explain`.

    Returns
    -------
    found : Interactions

    References
    ----------
    Grabisch and Roubens (1999), An axiomatic approach to the concept of interaction among players in
    cooperative games. Lundberg et al. (2020), From local explanations to global understanding.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelweave as kw
    >>> from kernelweave.inspection import interactions
    >>> from kernelweave.kernels import Linear, Polynomial
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> reg = kw.MKLRegressor([Linear(), Polynomial(2)], C=100.0).fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    >>> found = interactions(reg, X[:2], ["x0"], background=X)
    >>> together = np.abs(found.values[0, 0])
    >>> bool(together[1] > 10 * together[2])
    True
    """
    predictor, rows = fitted_model(model).model_, inputs_for(model, X)
    others, weight = background_for(model, X, rows, background, background_weight)
    names = _column_names(model, X, rows, feature_names)
    asked = [_place(feature, names) for feature in ([features] if isinstance(features, str) else features)]
    x, b = _numbers(rows), _numbers(others)
    taken = [own for own in predictor.expansions().values() if isinstance(own, list)]
    parts = [part for own in taken for part in own]
    shape = (len(predictor.intercept), len(x), len(asked), len(names))
    values = np.zeros(shape)
    if parts:
        home = device_for(predictor, device)
        phi = _attributions(parts, x, b, weight, home)
        for k, f in enumerate(asked):
            values[:, :, k] = _interactions(parts, x, b, weight, f, home)
            values[:, :, k, f] = phi[..., f] - 0.5 * values[:, :, k].sum(axis=2)
    return Interactions(values[0] if len(values) == 1 else values, [names[f] for f in asked], names)


def _interactions(
    parts: list[Expansion], x: FloatArray, b: FloatArray, weight: FloatArray, f: int, device: Any
) -> FloatArray:
    """I_fg of every g, 0 at g = f; shape (J, n, p)."""
    found = np.zeros((parts[0].coef.shape[1], *x.shape))
    for r in range(len(x)):  # the background with f of the sample
        found[:, [r]] += _attributions(parts, x[[r]], _with(b, f, x[r, f]), weight, device)
    for k in range(len(b)):  # the samples with f of the background
        found -= _attributions(parts, _with(x, f, b[k, f]), b[[k]], weight[[k]], device)
    found[..., f] = 0.0
    return found


def _attributions(
    parts: list[Expansion], x: FloatArray, b: FloatArray, weight: FloatArray, device: Any
) -> FloatArray:
    """Shapley values of all columns, summed over kernels, shape (J, n, p)."""
    found = merged([part.attribution(x, b, weight, device) for part in parts])
    values = np.zeros((parts[0].coef.shape[1], *x.shape))
    values[..., found.players[:, 0]] = found.values
    return values


def _with(table: FloatArray, column: int, value: float) -> FloatArray:
    changed = table.copy()
    changed[:, column] = value
    return changed


def _numbers(rows: Any) -> FloatArray:
    """All columns as one array of numbers without gaps."""
    if is_views(rows) and not rows.observed.all():
        raise ValueError("X: some of the samples or background samples lack a view; leave them out.")
    table = as_table(in_double(rows))
    columns = np.arange(table.shape[1])
    if len(numeric_positions(table)) < len(columns):
        raise ValueError("X: interactions are between columns of numbers, and some hold text.")
    values = take_columns(table, columns)
    return np.array(values.toarray() if sparse.issparse(values) else values, dtype=np.float64)


def _place(feature: Any, names: list[str]) -> int:
    """The column of a feature."""
    if isinstance(feature, str):
        if feature not in names:
            hint = did_you_mean(feature, names)
            raise ValueError(f"features: {feature!r} is none of {quoted(names)}.{hint}")
        return names.index(feature)
    if not -len(names) <= feature < len(names):
        raise ValueError(f"features: {feature!r} is no column of {len(names)}.")
    return int(feature) % len(names)
