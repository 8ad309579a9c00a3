"""Why a model says what it says about a sample: exact attributions to kernels and to their features."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import _safe_indexing, check_random_state

from .._backend import resolve_device
from .._typing import FloatArray, IntArray
from ..estimators._base import function_names
from ..gram import Predictor, parse_memory
from ..gram.games import Attribution, Expansion, merged
from ..kernels import as_views
from ..kernels.base import in_double
from ..kernels.columns import as_table, column_names, is_views, numeric_positions, take_columns
from ._models import data_for, fitted_model, inputs_for, spread

#: background rows that are taken from the samples themselves
OWN_BACKGROUND = 100


@dataclass(frozen=True)
class KernelAttribution:
    """What the features of one kernel add.

    Attributes
    ----------
    features : ndarray of int
        Their positions in `Explanation.feature_names`.
    values : ndarray of shape (n, n_own), or (n_functions, n, n_own)
    """

    features: IntArray
    values: FloatArray


@dataclass(frozen=True)
class Importance:
    """How much features add over samples, in size.

    Attributes
    ----------
    feature_names : list of str
    mean : ndarray of shape (n_features,)
        Mean of |value|.
    low, high : ndarray of shape (n_features,)
        Ends of the intervals.
    """

    feature_names: list[str]
    mean: FloatArray
    low: FloatArray
    high: FloatArray

    def frame(self) -> Any:
        """Features, means and intervals as a pandas DataFrame, the largest first."""
        import pandas as pd

        table = {"feature": self.feature_names, "mean": self.mean, "low": self.low, "high": self.high}
        return pd.DataFrame(table).sort_values("mean", ascending=False, kind="stable", ignore_index=True)


@dataclass(frozen=True)
class Explanation:
    """Exact attributions of the values of a model, by kernel and by feature; `explain` makes it.

        f(x) = base_value + sum_m kernel_values[m] = base_value + sum_f values[f]

    Where a model has several functions (classes, pairs of classes, outputs), arrays have a first axis for
    them.

    Attributes
    ----------
    values : ndarray of shape (n, n_features), or (n_functions, n, n_features)
        Attributions of every feature, summed over the kernels. The last features are kernels that are
        attributed as a whole: see `whole`.
    kernel_values : ndarray of shape (n, n_kernels), or (n_functions, n, n_kernels)
        f_m(x) minus its mean over the background.
    base_value : float, or ndarray of shape (n_functions,)
        Mean of f over the background.
    feature_names, kernel_names, function_names : list
    whole : dict of str to str
        Kernels that are not taken apart by features, or not for all samples, and why.
    parts : dict of str to KernelAttribution
        By kernel: what its features add, for kernels with a weight; empty if they were not kept.
    data : ndarray of shape (n, n_features)
        The values of the features; NaN for symbols and for whole kernels.
    sample_names : list
        IDs of the samples, or their numbers.
    """

    values: FloatArray
    kernel_values: FloatArray
    base_value: Any
    feature_names: list[str]
    kernel_names: list[str]
    function_names: list[Any]
    whole: dict[str, str] = field(default_factory=dict)
    parts: dict[str, KernelAttribution] = field(default_factory=dict)
    data: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    sample_names: list[Any] = field(default_factory=list)

    def within(self, kernel: str) -> FloatArray:
        """What every feature adds within one kernel, in the shape of `values`.

        Parameters
        ----------
        kernel : str
            One of `kernel_names`.
        """
        if kernel not in self.kernel_names:
            raise ValueError(f"kernel={kernel!r} is none of {self.kernel_names[:10]!r}.")
        found = np.zeros_like(self.values)
        if kernel in self.parts:
            part = self.parts[kernel]
            found[..., part.features] = part.values
        elif self.kernel_values[..., self.kernel_names.index(kernel)].any():
            raise ValueError("attributions within kernels were not kept: explain(..., within=True) does.")
        return found

    def importance(
        self, level: float = 0.95, n_resamples: int = 200, random_state: Any = 0, *, by: str = "feature"
    ) -> Importance:
        """Mean over samples (and functions) of |value| of every feature, or kernel, with intervals.

        Intervals are percentiles over samples drawn again with replacement (bootstrap): how far the mean
        depends on which samples were explained, not how far the model depends on its training samples.

        Parameters
        ----------
        level : float, default=0.95
        n_resamples : int, default=200
        random_state : int, RandomState or None, default=0
        by : {"feature", "kernel"}, default="feature"
        """
        if not 0.0 < level < 1.0:
            raise ValueError(f"level={level!r}: expected a number between 0 and 1.")
        values, names = self.parts_by(by)
        sizes = np.abs(values).mean(axis=0)
        draws = check_random_state(random_state).randint(len(sizes), size=(n_resamples, len(sizes)))
        means = np.array([sizes[rows].mean(axis=0) for rows in draws])
        low, high = np.quantile(means, [0.5 - 0.5 * level, 0.5 + 0.5 * level], axis=0)
        return Importance(list(names), sizes.mean(axis=0), low, high)

    def parts_by(self, by: str) -> tuple[FloatArray, list[str]]:
        """Attributions of every function, shape (n_functions, n, n_parts), and the names of the parts.

        Parameters
        ----------
        by : {"feature", "kernel"}
        """
        if by not in ("feature", "kernel"):
            raise ValueError(f"by={by!r}: expected 'feature' or 'kernel'.")
        of_kernels = by == "kernel"
        values = self.kernel_values if of_kernels else self.values
        names = self.kernel_names if of_kernels else self.feature_names
        return values if values.ndim == 3 else values[None], names

    def function(self, which: Any = None) -> FloatArray:
        """Values of one function, by number or name, shape (n, n_features)."""
        return np.asarray(self.parts_by("feature")[0][self.place_of_function(which)])

    def place_of_function(self, which: Any = None) -> int:
        """The number of a function, by number or name."""
        count = len(self.function_names)
        if which is None and count == 1:
            return 0
        if which is not None and (found := _place(which, self.function_names)) is not None:
            return found
        names = ", ".join(f"{j} ({name})" for j, name in enumerate(self.function_names))
        told = "" if which is None else f"={which!r}"
        raise ValueError(f"function{told}: choose one of {names}.")

    def place_of_sample(self, which: Any) -> int:
        """The row of a sample, by its ID; numbers are rows."""
        found = _place(which, self.sample_names)
        if found is None:
            told = ", ".join(map(repr, self.sample_names[:5]))
            raise ValueError(
                f"sample={which!r} is none of {len(self.sample_names)}: give a row, or an ID such as {told}."
            )
        return found

    def to_shap(self) -> Any:
        """The same as a `shap.Explanation`, for the plots of shap; functions are its last axis."""
        try:
            import shap
        except ImportError as error:
            raise ImportError("to_shap needs shap: pip install shap.") from error
        several = self.values.ndim == 3
        base = np.broadcast_to(self.base_value, (len(self.data), *np.shape(self.base_value)))
        return shap.Explanation(
            np.moveaxis(self.values, 0, 2) if several else self.values,
            base_values=np.array(base),
            data=self.data,
            feature_names=self.feature_names,
            output_names=[str(name) for name in self.function_names] if several else None,
        )


def _place(which: Any, names: list[Any]) -> int | None:
    """The position that a number or a name stands for; None where it stands for nothing."""
    try:
        return range(len(names))[operator.index(which)]
    except IndexError:
        return None
    except TypeError:
        return names.index(which) if which in names else None


def explain(
    model: Any,
    X: Any,
    background: Any = None,
    *,
    background_weight: Any = None,
    within: bool = True,
    feature_names: Any = None,
    memory_limit: str | int | None = "2GB",
    device: Any = None,
) -> Explanation:
    """Exact attributions of what a model says about samples: to its kernels, and to features within each.

    Attributions are Shapley values against background samples (interventional): each feature takes its
    value from the sample or from a background sample, every order in which the features change from one to
    the other counts equally, and so does every background sample. For a feature f of a kernel that is a
    product over features, k(x, z) = prod_f k_f(x_f, z_f), with v_f = k_f(x_f, z_if) and
    a_f = k_f(x'_f, z_if),

        phi_f(x) = sum_i c_i (v_f - a_f) int_0^1 prod_{g != f} ((1 - u) a_g + u v_g) du

    summed over kernels and averaged over background samples x'. They add up to f(x) minus the mean of f over
    the background, without sampling and in time linear in the numbers of samples, support vectors and
    background samples. f is the decision value (for a regressor, the prediction).

    Gaussian, Laplacian, chi-square, linear, polynomial and histogram intersection kernels, their sums,
    products and multiples, and kernels of strings (by place) are taken apart by features. Other kernels,
    including precomputed ones, have exact attributions as a whole; `Explanation.whole` lists them.

    Parameters
    ----------
    model : fitted estimator, Pipeline ending in one, or search
        Features are those that the estimator sees: in a pipeline, what its transformers produce.
    X : array-like, sparse matrix, DataFrame or Views of shape (n, n_features), or kernels
        As in the model's ``predict``.
    background : same, of shape (n_background, n_features), optional
        What samples are compared with: one row (also as a Series or a vector), several, or a summary: cluster
        centres with `background_weight`, for example, or what ``shap.kmeans`` returns. By default at most 100
        rows of X, evenly spread; needed where X has one row. A mean is unlike any real sample; rows of real
        samples are easier to defend.
    background_weight : array-like of shape (n_background,), optional
        For a summary, how many samples each row stands for.
    within : bool, default=True
        Whether to keep what features add within each kernel; otherwise only the sum over kernels is kept.
    feature_names : sequence of str, optional
        Names of the columns that the estimator sees. By default those it was fitted on, those of X, or
        what the transformers of a pipeline call them; x0, x1, ... where nothing names them.
    memory_limit : str or int, default="2GB"
        Most memory that all attributions together may take.
    device : str, optional
        Where they are computed: "cuda", "cuda:1", ..., "torch:cpu", or "cpu" for compiled loops on the host.
        By default where the model was fitted, if that device is available. Attributions are NumPy arrays.

    Returns
    -------
    explanation : Explanation

    References
    ----------
    Owen (1972), Multilinear extensions of games. Chau, Muandet and Sejdinovic (2022), RKHS-SHAP.
    Janzing, Minorics and Bloebaum (2020), Feature relevance quantification in explainable AI.

    Examples
    --------
    >>> import numpy as np
    >>> import kernelweave as kw
    >>> from kernelweave.kernels import RBF, Linear
    >>> X = np.random.default_rng(0).normal(size=(40, 3))
    >>> reg = kw.MKLRegressor({"smooth": RBF(), "line": Linear()}).fit(X, X[:, 0] * X[:, 1])
    >>> found = kw.explain(reg, X[:5], background=X)
    >>> found.values.shape, found.kernel_values.shape, found.within("smooth").shape
    ((5, 3), (5, 2), (5, 3))
    >>> bool(np.allclose(found.values.sum(axis=1) + found.base_value, reg.predict(X[:5])))
    True
    """
    inner, rows = fitted_model(model), inputs_for(model, X)
    others, weight = background_for(model, X, rows, background, background_weight)
    limit = parse_memory(memory_limit)
    home = device_for(inner.model_, device)
    found = _explanation(inner.model_, rows, others, weight, within, limit, home)
    names, players = _column_names(model, X, rows, feature_names), found.pop("players")
    titles = [names[c] if place < 0 else f"{names[c]}[{place}]" for c, place in players]
    base = weight @ inner.model_(others)
    return Explanation(
        **found,
        base_value=float(base[0]) if len(base) == 1 else base,
        feature_names=[*titles, *(f"kernel {name}" for name in found["whole"])],
        function_names=function_names(inner),
        sample_names=_sample_names(X, rows),
    )


def device_for(predictor: Predictor, device: Any) -> Any:
    """The torch device that attributions are computed on; None for the loops on the host."""
    return predictor.torch_device if device is None else resolve_device(device)


def affordable(model: Any, X: Any, rows: int, background: int, work: float) -> tuple[int, int]:
    """Numbers of samples to explain and of background samples, at most those given, for about `work`.

    The unit of work is a feature of a sample, a background sample and a support vector: about ten
    nanoseconds. Twenty samples and ten background samples are always allowed.
    """
    expansions, p = fitted_model(model).model_.expansions(), inputs_for(model, X).shape[1]
    parts = [part for own in expansions.values() if isinstance(own, list) for part in own]
    one = sum(len(part.coef) * part.size(p) for part in parts)
    share = min(1.0, np.sqrt(work / max(one * rows * background, 1.0)))
    return max(min(20, rows), int(share * rows)), max(min(10, background), int(share * background))


def background_for(model: Any, X: Any, rows: Any, background: Any, weight: Any) -> tuple[Any, FloatArray]:
    """Background samples as the model inside takes them, and their weights, with sum 1."""
    if background is None:
        if rows.shape[0] == 1:
            raise ValueError(
                "X has one row, which would be compared with itself: pass what it is compared with, such as "
                "background=X_train."
            )
        others = _safe_indexing(rows, spread(rows.shape[0], OWN_BACKGROUND))
        return others, _weights(weight, others.shape[0])
    if hasattr(background, "weights") and hasattr(background, "data"):  # a summary by shap.kmeans
        background, weight = background.data, background.weights if weight is None else weight
    shape = getattr(X, "shape", ())
    if len(shape) == 2 and getattr(background, "shape", ()) == shape[1:]:  # one row
        background = background.to_frame().T if hasattr(background, "to_frame") else background[None]
    try:
        others = inputs_for(model, background)
    except ValueError as error:
        raise ValueError(f"background: {error}") from error
    return others, _weights(weight, others.shape[0])


def _weights(given: Any, count: int) -> FloatArray:
    """Weights of the background, with sum 1."""
    if given is None:
        return np.full(count, 1.0 / count)
    try:
        weight = np.asarray(given, dtype=np.float64)
    except ValueError:
        weight = np.zeros(0)
    if weight.shape != (count,) or not (weight >= 0).all() or not 0 < weight.sum() < np.inf:
        raise ValueError(
            f"background_weight: expected {count} numbers, one for each background sample, none negative."
        )
    result: FloatArray = weight / weight.sum()
    return result


def _components(predictor: Predictor, X: Any) -> FloatArray:
    """What each kernel adds, (J, n, M); a learned kernel that is not a sum counts as one."""
    if len(predictor.source.names) == 1:
        return np.array((predictor(X) - predictor.intercept).T[:, :, None])
    return predictor.components(X)


def _check_memory(
    predictor: Predictor, taken: dict[int, Any], X: Any, within: bool, limit: int | None
) -> None:
    """Refuse attributions that take more than the limit."""
    p, cells = X.shape[1], len(predictor.intercept) * X.shape[0]
    widths = [sum(part.size(p) for part in own) for own in taken.values()] if within else []
    needed = 8 * cells * (2 * p + sum(widths))
    if limit is not None and needed > limit:
        remedy = "within=False, " if within else ""
        raise ValueError(
            f"attributions of {X.shape[0]} samples take {needed / 1e9:.2g} GB, more than memory_limit: pass "
            f"{remedy}fewer samples at a time, or a larger limit."
        )


class _Features:
    """Attributions by feature, summed over kernels: columns of numbers, and places of columns of strings.

    Parameters
    ----------
    J, n, p : int
        Functions, samples, columns.
    """

    def __init__(self, J: int, n: int, p: int) -> None:
        self.columns = np.zeros((J, n, p))
        self.places: dict[int, FloatArray] = {}

    def add(self, part: Attribution) -> None:
        """Add the attributions of one kernel."""
        numbers = part.players[:, 1] < 0
        self.columns[..., part.players[numbers, 0]] += part.values[..., numbers]
        for column in np.unique(part.players[~numbers, 0]).tolist():
            own = np.flatnonzero(~numbers & (part.players[:, 0] == column))
            old, at = self.places.get(column, self.columns[..., :0]), part.players[own, 1]
            more = max(0, int(at.max()) + 1 - old.shape[2])
            self.places[column] = np.pad(old, ((0, 0), (0, 0), (0, more)))
            self.places[column][..., at] += part.values[..., own]

    def players(self, numeric: IntArray) -> list[tuple[int, int]]:
        """Column and place of every feature, in order."""
        found = [(c, -1) for c in numeric.tolist() if c not in self.places]
        return sorted([*found, *((c, k) for c, own in self.places.items() for k in range(own.shape[2]))])

    def values(self, players: list[tuple[int, int]]) -> FloatArray:
        """Attributions of all features, shape (J, n, n_features)."""
        if not self.places:
            return self.columns[..., [c for c, _ in players]]
        parts = [self.columns[..., c] if k < 0 else self.places[c][..., k] for c, k in players]
        return np.stack(parts, axis=2)


def _explanation(
    predictor: Predictor,
    X: Any,
    background: Any,
    weight: FloatArray,
    within: bool,
    limit: int | None,
    device: Any,
) -> dict[str, Any]:
    """Attributions kernel by kernel; kernels that cannot be taken apart are attributed as a whole."""
    names, expansions = list(predictor.source.names), predictor.expansions()
    taken = {m: own for m, own in expansions.items() if isinstance(own, list)}
    whole = {m: str(own) for m, own in expansions.items() if not isinstance(own, list)}
    given = not taken and predictor.source.given
    _check_memory(predictor, taken, X, within, limit)
    kernels = _components(predictor, X)
    kernels -= np.einsum("b,jbm->jm", weight, _components(predictor, background))[:, None]
    features, parts = _Features(len(kernels), X.shape[0], 0 if given else X.shape[1]), {}
    left = kernels.copy()
    for m, own in taken.items():
        rows, others = (np.flatnonzero(predictor.source.observed_in(A)[:, m]) for A in (X, background))
        if len(rows) < X.shape[0] or len(others) < len(weight):
            whole[m] = "some of the samples or background samples lack its view"
        found = _attribution(own, X, background, weight, rows, others, device)
        features.add(found)
        left[..., m] -= found.values.sum(axis=2)
        if within:
            parts[m] = found
    players = features.players(np.arange(0) if given else numeric_positions(as_table(X)))
    where = {player: k for k, player in enumerate(players)}
    order = sorted(whole)
    for k, m in enumerate(order if within else ()):
        where[(-1, m)] = len(players) + k
        last = Attribution(np.array([[-1, m]]), left[..., [m]])
        parts[m] = merged([parts[m], last]) if m in parts else last
    values = np.concatenate([features.values(players), left[..., order]], axis=2)
    alone = len(values) == 1
    return {
        "values": values[0] if alone else values,
        "kernel_values": kernels[0] if alone else kernels,
        "kernel_names": names,
        "whole": {names[m]: whole[m] for m in order},
        "parts": {
            names[m]: KernelAttribution(
                np.array([where[(c, k)] for c, k in part.players.tolist()], dtype=int),
                part.values[0] if alone else part.values,
            )
            for m, part in parts.items()
        },
        "data": _data(X, players, len(order)),
        "players": players,
    }


def _attribution(
    expansions: list[Expansion],
    X: Any,
    background: Any,
    weight: FloatArray,
    rows: IntArray,
    others: IntArray,
    device: Any,
) -> Attribution:
    """Attributions of one kernel, for samples that have its view against others that do; 0 otherwise."""
    J = expansions[0].coef.shape[1]
    if not (len(rows) and len(others)):
        return Attribution.of_nothing(J, X.shape[0])
    x, b = (in_double(_safe_indexing(*pair)) for pair in ((X, rows), (background, others)))
    found = merged([part.attribution(x, b, weight[others], device) for part in expansions])
    if len(rows) == X.shape[0]:
        return found
    values = np.zeros((J, X.shape[0], len(found.players)))
    values[:, rows] = found.values
    return Attribution(found.players, values)


def _data(X: Any, players: list[tuple[int, int]], n_whole: int) -> FloatArray:
    """Values of the features; NaN for symbols and whole kernels."""
    data = np.full((X.shape[0], len(players) + n_whole), np.nan)
    numbers = np.array([k for k, (_, place) in enumerate(players) if place < 0], dtype=int)
    if len(numbers):
        values = take_columns(as_table(X), np.array([players[k][0] for k in numbers]))
        data[:, numbers] = values.toarray() if sparse.issparse(values) else values
    return data


# -- names --------------------------------------------------------------------------------------


def readable_names(model: Any, X: Any) -> list[str]:
    """Names of the features of `explain`, for people: "column 17" of an array, counted from 0."""
    return _column_names(model, X, inputs_for(model, X), unnamed="column ")


def _column_names(model: Any, X: Any, rows: Any, given: Any = None, unnamed: str = "x") -> list[str]:
    """Names of the columns that the estimator inside sees."""
    if given is not None:
        if isinstance(given, str):
            raise ValueError(f"feature_names={given!r}: expected a sequence of names.")
        if len(given) != rows.shape[1]:
            raise ValueError(f"feature_names has {len(given)} names for {rows.shape[1]} columns.")
        return [str(name) for name in given]
    if is_views(rows):
        tables = as_views(data_for(model, X)).tables  # with the names that checked ones have no more
        return [
            f"{view}: {name}"
            for view, table in rows.tables.items()
            for name in column_names(tables[view]) or _numbered(table, unnamed)
        ]
    inner, seen = fitted_model(model), data_for(model, X)
    names = getattr(inner, "feature_names_in_", None)
    known = names if names is not None else column_names(seen) or _made_names(model)
    return _numbered(rows, unnamed) if known is None else [str(name) for name in known]


def _numbered(table: Any, prefix: str) -> list[str]:
    return [f"{prefix}{c}" for c in range(table.shape[1])]


def _made_names(model: Any) -> list[str] | None:
    """What the transformers of a pipeline call the columns they make; None where they do not say."""
    if hasattr(model, "best_estimator_"):
        return _made_names(model.best_estimator_)
    if len(getattr(model, "steps", ())) < 2:
        return None
    try:
        return [str(name) for name in model[:-1].get_feature_names_out()]
    except (AttributeError, ValueError):
        return None


def _sample_names(X: Any, rows: Any) -> list[Any]:
    """IDs of views, the index of a data frame, or numbers."""
    ids = getattr(rows, "ids", None) if is_views(rows) else getattr(X, "index", None)
    return list(range(rows.shape[0])) if ids is None or callable(ids) else list(ids)
