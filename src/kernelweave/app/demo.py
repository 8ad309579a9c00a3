"""The demonstration behind ``kernelweave demo``: three views of breast tumours, twelve kernels.

Each of the 569 tumours was photographed under a microscope and ten properties of the cell
nuclei were measured; the data set holds their mean, their standard error and their worst
value. The three views are kernelised four ways each, and three models are compared on
held-out tumours: the best single kernel, the plain sum of all kernels, and the sum with
learned weights. What is chosen (the kernel, C, the norm p of the weights) is chosen by
cross-validation on the training part only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, StratifiedKFold, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from ..estimators import MKLClassifier
from ..inspection import KernelWeightsDisplay
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
class Split:
    """Training and held-out part of the data."""

    X_train: np.ndarray
    X_test: np.ndarray
    y_train: np.ndarray
    y_test: np.ndarray


@dataclass(frozen=True)
class Candidate:
    """A model to fit: a name, its kernels and the parameters to choose among."""

    label: str
    kernels: dict[str, Kernel]
    regularizer: Regularizer
    grid: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True)
class Result:
    """A candidate fitted on the training part, its parameters chosen there as well."""

    candidate: Candidate
    model: MKLClassifier
    validation: float
    accuracy: float
    n_test: int

    @property
    def errors(self) -> int:
        """Number of held-out samples on the wrong side."""
        return round((1 - self.accuracy) * self.n_test)


def run(out: Path, seed: int = 0, console: Console | None = None) -> list[Result]:
    """Fit, compare, print and plot.

    Parameters
    ----------
    out : Path
        Where to write the plot of the weights.
    seed : int
        Seed of the train/test split and of the folds.
    console : rich Console, optional
        Where to print; the terminal by default.

    Returns
    -------
    results : list of Result
        The best single kernel, the plain sum and the learned weights.
    """
    console = console or Console()
    data = load_split(seed)
    _print_task(console, data)
    results = compare(data, seed, console)
    learned = results[-1]
    console.print(weights_table(learned))
    _print_certificate(console, learned)
    console.print(accuracy_table(results))
    _print_caution(console, learned)
    _save_plot(console, learned, out)
    return results


def load_split(seed: int) -> Split:
    """The breast-cancer data of scikit-learn, split with both classes in proportion."""
    X, y = load_breast_cancer(return_X_y=True)
    return Split(*train_test_split(X, y, test_size=TEST_SHARE, stratify=y, random_state=seed))


def make_kernels() -> dict[str, Kernel]:
    """Every view with a linear kernel and Gaussian kernels of three widths.

    Examples
    --------
    >>> list(make_kernels())[:4]
    ['mean, linear', 'mean, rbf 0.01', 'mean, rbf 0.03', 'mean, rbf 0.1']
    """
    return {name: kernel for view, columns in VIEWS.items() for name, kernel in _view_kernels(view, columns)}


def _view_kernels(view: str, columns: slice) -> Iterator[tuple[str, Kernel]]:
    yield f"{view}, linear", Linear(columns=columns)
    for gamma in GAMMAS:
        yield f"{view}, rbf {gamma:g}", RBF(gamma=gamma, columns=columns)


def compare(data: Split, seed: int, console: Console) -> list[Result]:
    """Best single kernel, plain sum and learned weights, with a progress bar meanwhile."""
    kernels = make_kernels()
    costs = {"C": COSTS}
    singles = [Candidate(name, {name: kernel}, Uniform(), costs) for name, kernel in kernels.items()]
    sums = [
        Candidate("uniform sum", kernels, Uniform(), costs),
        Candidate("learned weights", kernels, LpNorm(), {**costs, "regularizer__p": NORMS}),
    ]
    fitted = list(_fit_all([*singles, *sums], data, seed, console))
    best = max(fitted[: len(singles)], key=lambda result: result.validation)
    return [best, *fitted[len(singles) :]]


def _fit_all(candidates: list[Candidate], data: Split, seed: int, console: Console) -> Iterator[Result]:
    columns = (SpinnerColumn(), TextColumn("{task.description:<34}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("fitting", total=len(candidates))
        for candidate in candidates:
            progress.update(task, description=f"fitting {candidate.label}")
            yield fit(candidate, data, seed)
            progress.advance(task)
        progress.update(task, description=f"fitted {len(candidates)} models")


def fit(candidate: Candidate, data: Split, seed: int) -> Result:
    """Choose by cross-validation on the training part, refit there, score on the rest."""
    model = MKLClassifier(candidate.kernels, regularizer=candidate.regularizer)
    pipeline = Pipeline([("scale", StandardScaler()), ("mkl", model)])
    grid = {f"mkl__{name}": list(values) for name, values in candidate.grid.items()}
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)
    search = GridSearchCV(pipeline, grid, cv=folds)
    search.fit(data.X_train, data.y_train)
    accuracy = search.score(data.X_test, data.y_test)
    return Result(candidate, search.best_estimator_[-1], search.best_score_, accuracy, len(data.y_test))


def weights_table(result: Result) -> Table:
    """The kernels with their weight and the norm of their component, as a table."""
    table = Table(title=_title(result), title_justify="left")
    table.add_column("kernel")
    table.add_column("weight", justify="right")
    table.add_column("")
    table.add_column("norm", justify="right")
    model: Any = result.model
    top = max(model.weights_)
    for name, weight, norm in zip(model.kernel_names_, model.weights_, model.norms_, strict=True):
        table.add_row(name, f"{weight:.3f}", "█" * round(20 * weight / top), f"{norm:.3f}")
    return table


def accuracy_table(results: list[Result]) -> Table:
    """The models side by side: cross-validated and held-out accuracy, as a table."""
    table = Table(title="Accuracy", title_justify="left")
    table.add_column("model")
    for heading in ("C", f"{N_FOLDS}-fold", "held out", "errors"):
        table.add_column(heading, justify="right")
    for label, result in zip(_row_labels(results), results, strict=True):
        cells = (f"{result.model.C:g}", f"{result.validation:.3f}", f"{result.accuracy:.3f}")
        table.add_row(label, *cells, f"{result.errors} of {result.n_test}")
    return table


def _row_labels(results: list[Result]) -> list[str]:
    single, uniform, learned = results
    return [f"best single: {single.candidate.label}", uniform.candidate.label, _title(learned)]


def _title(result: Result) -> str:
    return f"{result.candidate.label}, p = {result.model.get_params()['regularizer__p']:.3g}"


def _print_task(console: Console, data: Split) -> None:
    console.print("[bold]Breast cancer:[/bold] benign or malignant, from three views of the cell nuclei")
    console.print(f"{len(data.y_train)} tumours to learn from, {len(data.y_test)} held out")
    console.print(f"{len(make_kernels())} kernels: {', '.join(VIEWS)} x linear and {len(GAMMAS)} RBF\n")


def _print_certificate(console: Console, result: Result) -> None:
    model: Any = result.model
    console.print(f"Relative duality gap {model.dual_gap_:.1e}, asked for {model.tol:.1e}:")
    console.print("no other weights and coefficients lower the objective by a larger share.\n")


def _print_caution(console: Console, result: Result) -> None:
    console.print(f"One split: a difference of a few errors out of {result.n_test} is within chance.\n")


def _save_plot(console: Console, result: Result, out: Path) -> None:
    try:
        display = KernelWeightsDisplay.from_estimator(result.model)
    except ImportError as error:
        console.print(f"No plot: {error}", markup=False)
        return
    display.ax_.set_title(f"kernelweave demo: {_title(result)}")
    display.figure_.savefig(out, dpi=150)
    console.print(f"Plot of the weights: {out}", markup=False)
