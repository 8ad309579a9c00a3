"""What the experiments on generalized MKL share: splits, and tuning with and without selection."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from _selectors import importance
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.preprocessing import StandardScaler

#: splits below this were looked at while set-ups were chosen
FIRST = 100
FOLDS = 3


class Split(NamedTuple):
    """Features and labels, to train and to test."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


class Method(NamedTuple):
    """A learner with its options; `order` ranks features where the learner does not."""

    make: Callable[..., Any]
    options: Sequence[tuple]
    order: Callable[..., np.ndarray] | None = None


class Curve(NamedTuple):
    """A model on all features; accuracies with all of them, then with the best few."""

    model: Any
    scores: list[float]


class Choice(NamedTuple):
    """What cross-validation chose: the model on all features, accuracies with all and with the N_d best.

    `ceilings` are the accuracies of the options that do best on the test part itself.
    """

    model: Any
    accuracies: list[float]
    ceilings: list[float]
    sparsest: Curve


def divided(X: np.ndarray, y: np.ndarray, seed: int, train: float | int, scaled: bool = True) -> Split:
    """One stratified split, standardised on its training part; constant columns are left out."""
    X, X_test, y, y_test = train_test_split(X, y, train_size=train, random_state=seed, stratify=y)
    moving = X.std(axis=0) > 0
    X, X_test = X[:, moving], X_test[:, moving]
    if not scaled:
        return Split(X, y, X_test, y_test)
    scaler = StandardScaler().fit(X)
    return Split(scaler.transform(X), y, scaler.transform(X_test), y_test)


def inner(parts: Split, folds: int = FOLDS) -> list[Split]:
    """The training part divided again, for cross-validation."""
    X, y, _, _ = parts
    pairs = StratifiedKFold(folds, shuffle=True, random_state=0).split(X, y)
    return [Split(X[train], y[train], X[test], y[test]) for train, test in pairs]


def curve(method: Method, option: tuple, parts: Split, counts: Sequence[int], order: Any = None) -> Curve:
    """Test accuracies with all features and with the N_d best, learned again."""
    model = method.make(*option).fit(parts.X, parts.y)
    if order is None and counts:
        order = np.argsort(-importance(model), kind="stable")
    tops = [order[:count] for count in counts]
    some = [method.make(*option).fit(parts.X[:, top], parts.y) for top in tops]
    scores = [one.score(parts.X_test[:, top], parts.y_test) for one, top in zip(some, tops, strict=True)]
    return Curve(model, [model.score(parts.X_test, parts.y_test), *scores])


def curves(method: Method, parts: Split, counts: Sequence[Sequence[int]]) -> list[Curve]:
    """One per option; features are ranked once where that does not depend on it."""
    order = None if method.order is None else method.order(parts.X, parts.y)
    pairs = zip(method.options, counts, strict=True)
    return [curve(method, option, parts, some, order) for option, some in pairs]


def chosen(method: Method, parts: Split, counts: Sequence[int] = (), thorough: bool = True) -> Choice:
    """Test accuracies with all features and with the N_d best.

    The options are those of best cross-validated accuracy with all features. Unless `thorough`, others are
    tried on all features alone.
    """
    scores = validated(method, parts) if len(method.options) > 1 else np.zeros((2, 1))
    best = int(scores.mean(axis=0).argmax())
    final = curves(method, parts, [counts if thorough or k == best else () for k in range(scores.shape[1])])
    tried = range(1 + len(counts) if thorough else 1)
    return Choice(
        final[best].model,
        [100.0 * score for score in final[best].scores],
        [100.0 * max(one.scores[at] for one in final) for at in tried],
        sparsest(final, scores, best),
    )


def validated(method: Method, parts: Split) -> np.ndarray:
    """Accuracies with all features: one line per fold, one column per option."""
    plain = Method(method.make, method.options)
    none: list[Sequence[int]] = [()] * len(method.options)
    return np.array([[one.scores[0] for one in curves(plain, fold, none)] for fold in inner(parts)])


def sparsest(final: list[Curve], scores: np.ndarray, best: int) -> Curve:
    """The model of fewest features that cross-validation cannot tell from the best.

    A point is as good if its mean loss against the best, fold by fold, is within a standard error.
    """
    loss = scores[:, [best]] - scores
    close = loss.mean(axis=0) <= loss.std(axis=0, ddof=1) / np.sqrt(len(loss))
    found = [one for one, good in zip(final, close, strict=True) if good]
    return min(found, key=lambda one: kept(one.model))


def tuned(method: Method, parts: Split) -> Any:
    """The model on all features with the options of best cross-validated accuracy."""
    best = int(validated(method, parts).mean(axis=0).argmax())
    return method.make(*method.options[best]).fit(parts.X, parts.y)


def best_single(method: Method, parts: Split) -> float:
    """Test accuracy of the one column of best cross-validated accuracy."""
    columns = ([k] for k in range(parts.X.shape[1]))
    singles = [parts._replace(X=parts.X[:, k], X_test=parts.X_test[:, k]) for k in columns]
    best = singles[int(np.argmax([validated(method, one).mean(axis=0).max() for one in singles]))]
    return 100.0 * tuned(method, best).score(best.X_test, best.y_test)


def kept(model: Any) -> int:
    """Features with at least 1e-6 of the largest weight; all, where the model has no weights."""
    weights = importance(model)
    return int(np.count_nonzero(weights > 1e-6 * weights.max(initial=0.0)))


def how_many(rows: list[dict], wanted: int = 20) -> str:
    """A note on the number of splits."""
    count = len({row["split"] for row in rows})
    said = f"Splits: {count} (of {wanted} asked for); ± are standard errors over splits."
    return said if count >= wanted else f"{said} Verdicts on so few splits are provisional."
