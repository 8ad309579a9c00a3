"""The demonstration behind ``kernelweave demo``: three views of breast tumours, twelve kernels.

Each of the 569 tumours was photographed under a microscope and ten properties of the cell
nuclei were measured; the data set holds their mean, their standard error and their worst
value. The three views are kernelised four ways each, and three models are compared on
held-out tumours: the best single kernel, the plain sum of all kernels, and the sum with
learned weights. What is chosen (the kernel, C, the norm p of the weights) is chosen by
cross-validation on the training part only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ..estimators import MKLClassifier
from ..kernels import RBF, Linear
from ..kernels.base import Kernel
from ..regularizers import LpNorm, Regularizer, Uniform

VIEWS = {"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}
GAMMAS = (0.01, 0.03, 0.1)  # ten standardised columns: squared distances are around 20
COSTS = (0.1, 1.0, 10.0)
NORMS = (1.0, 4 / 3, 2.0, 4.0)  # p: from few kernels to nearly all alike
N_FOLDS = 3
TEST_SHARE = 0.4


@dataclass(frozen=True)
class DemoModel:
    """A model fitted on the training part, its parameters chosen there as well, and its accuracies."""

    label: str
    model: Any
    validation: float
    accuracy: float
    n_train: int
    n_test: int

    @property
    def errors(self) -> int:
        """Number of held-out samples on the wrong side."""
        return round((1 - self.accuracy) * self.n_test)


def make_kernels() -> dict[str, Kernel]:
    """Every view with a linear kernel and Gaussian kernels of three widths.

    Examples
    --------
    >>> list(make_kernels())[:4]
    ['mean, linear', 'mean, rbf 0.01', 'mean, rbf 0.03', 'mean, rbf 0.1']
    """
    kernels: dict[str, Kernel] = {}
    for view, columns in VIEWS.items():
        kernels[f"{view}, linear"] = Linear(columns=columns)
        kernels |= {f"{view}, rbf {gamma:g}": RBF(gamma=gamma, columns=columns) for gamma in GAMMAS}
    return kernels


def compare(
    seed: int = 0, progress: Callable[[str, float], Any] = lambda label, share: None
) -> list[DemoModel]:
    """Best single kernel, plain sum and learned weights.

    Parameters
    ----------
    seed : int, default=0
        Seed of the train/test split and of the folds.
    progress : callable, optional
        Called with the name of a model and the share of models fitted, before each of them.
    """
    X, y = load_breast_cancer(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=TEST_SHARE, stratify=y, random_state=seed)
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)
    kernels = make_kernels()
    jobs: list[tuple[str, dict[str, Kernel], Regularizer]] = [
        *((f"best single: {name}", {name: kernel}, Uniform()) for name, kernel in kernels.items()),
        ("uniform sum", kernels, Uniform()),
        ("learned weights", kernels, LpNorm()),
    ]
    results = []
    for k, (label, chosen, regularizer) in enumerate(jobs):
        progress(label.removeprefix("best single: "), k / len(jobs))
        grid: dict[str, tuple[float, ...]] = {"mklclassifier__C": COSTS}
        if isinstance(regularizer, LpNorm):
            grid["mklclassifier__regularizer__p"] = NORMS
        pipeline = make_pipeline(StandardScaler(), MKLClassifier(chosen, regularizer=regularizer))
        search = GridSearchCV(pipeline, grid, cv=folds).fit(X, y)
        scores = search.best_score_, search.score(X_test, y_test)
        results.append(DemoModel(label, search.best_estimator_[-1], *scores, len(y), len(y_test)))
    return [max(results[:-2], key=lambda result: result.validation), *results[-2:]]
