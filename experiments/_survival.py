"""What the experiments on censored times share: methods of scikit-survival, their settings chosen inside."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from kernelweave.metrics import concordance_harrell

#: elastic nets: shares of the l1 norm, and costs on each path
SHARES, PATH = (0.1, 0.5, 0.9), 30

#: why rows of scikit-survival may be missing
MISSING = "scikit-survival is not installed (`pip install scikit-survival`, or the extra `kernelweave[test]`)"


def inner_folds(y: np.ndarray, n_splits: int = 5) -> list[tuple[np.ndarray, np.ndarray]]:
    """Folds of training samples with events in proportion."""
    cv = StratifiedKFold(n_splits, shuffle=True, random_state=0)
    return list(cv.split(np.zeros(len(y)), y["event"]))


def concordance(y: np.ndarray, risk: np.ndarray) -> float:
    """Harrell's."""
    return concordance_harrell(y["event"], y["time"], risk)


def forest(X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Random survival forest of 300 trees, the size of the leaves by its samples out of bag."""
    from sksurv.ensemble import RandomSurvivalForest

    common = {"n_estimators": 300, "max_features": "sqrt", "oob_score": True, "low_memory": True}
    models = [
        RandomSurvivalForest(min_samples_leaf=leaf, random_state=0, **common).fit(X, y) for leaf in (5, 15)
    ]
    return max(models, key=lambda model: model.oob_score_).predict


def elastic_net(X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Coxnet, share of the l1 norm and cost by five folds."""
    from sksurv.linear_model import CoxnetSurvivalAnalysis

    best: tuple[float, Any, float] = (-np.inf, None, 0.0)
    for share in SHARES:
        whole = CoxnetSurvivalAnalysis(l1_ratio=share, n_alphas=PATH, alpha_min_ratio=0.05).fit(X, y)
        scores = np.zeros(len(whole.alphas_))
        for train, test in inner_folds(y):
            part = CoxnetSurvivalAnalysis(l1_ratio=share, alphas=whole.alphas_).fit(X[train], y[train])
            scores += [concordance(y[test], part.predict(X[test], alpha=cost)) for cost in whole.alphas_]
        place = int(np.argmax(scores))
        best = max(best, (float(scores[place]), whole, float(whole.alphas_[place])), key=lambda one: one[0])
    _, model, cost = best
    return lambda new: model.predict(new, alpha=cost)


def boosting(X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Gradient boosting of trees of depth 2 on halves of the samples, their number by five folds."""
    from sksurv.ensemble import GradientBoostingSurvivalAnalysis

    options = {"learning_rate": 0.1, "max_depth": 2, "subsample": 0.5, "max_features": "sqrt"}
    scores = np.zeros(200)
    for train, test in inner_folds(y):
        part = GradientBoostingSurvivalAnalysis(n_estimators=200, random_state=0, **options)
        part.fit(X[train], y[train])
        scores += [concordance(y[test], risk) for risk in part.staged_predict(X[test])]
    count = int(np.argmax(scores)) + 1
    model = GradientBoostingSurvivalAnalysis(n_estimators=count, random_state=0, **options).fit(X, y)
    return model.predict


def kernel_svm(X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Survival support vector machine with a Gaussian kernel, its width and cost by five folds."""
    from sksurv.svm import FastKernelSurvivalSVM

    machine = FastKernelSurvivalSVM(kernel="rbf", rank_ratio=1.0, max_iter=50, random_state=0)
    width = 1.0 / X.shape[1]
    grid = {"alpha": np.geomspace(1e-4, 10.0, 6), "gamma": [0.1 * width, width]}
    return GridSearchCV(machine, grid, cv=inner_folds(y), error_score=0.5).fit(X, y).predict


RIVALS: dict[str, Callable[[np.ndarray, np.ndarray], Callable[[np.ndarray], np.ndarray]]] = {
    "random survival forest": forest,
    "elastic-net Cox": elastic_net,
    "gradient boosting": boosting,
    "survival SVM": kernel_svm,
}


def has_rivals() -> bool:
    """Whether scikit-survival is here."""
    return find_spec("sksurv") is not None
