"""Random small fits: data in odd units, kernels, losses, regularisers, costs and engines at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import kernelweave as kw
from kernelweave import kernels
from kernelweave.losses import LOSSES

Array = np.ndarray
Spec = tuple[str, dict[str, float], list[int]]  # kind, parameters, columns

CLASSIFICATION, REGRESSION = ("hinge", "squared_hinge", "logistic"), ("squared", "eps_insensitive", "huber")
KERNELS = {
    "rbf": kernels.RBF,
    "laplacian": kernels.Laplacian,
    "linear": kernels.Linear,
    "polynomial": kernels.Polynomial,
}
ENGINES = ("auto", "dense", "packed", "cached", "blocked")


@dataclass(frozen=True)
class Case:
    """One fit, as numbers; `estimator` makes the package's objects of it."""

    seed: int
    X: Array
    y: Array
    sample_weight: Array
    kernels: list[Spec]
    normalize: str | None
    loss: str
    width: float
    regularizer: tuple[str, Any]
    C: float
    engine: str
    fit_intercept: bool
    tol: float
    plain: bool  # ordinary units and costs: such a fit has no excuse for not converging

    def estimator(self) -> Any:
        """The unfitted estimator."""
        made = [KERNELS[kind](**own, columns=columns) for kind, own, columns in self.kernels]
        options: dict[str, Any] = {
            "regularizer": regularizer(self.regularizer),
            "normalize": self.normalize,
            "gram": self.engine,
            "tol": self.tol,
            "C": self.C,
        }
        if self.loss == "one_class":
            return kw.MKLOneClass(made, **options)
        options |= {"loss": self.make_loss(), "fit_intercept": self.fit_intercept}
        return (kw.MKLClassifier if self.loss in CLASSIFICATION else kw.MKLRegressor)(made, **options)

    def make_loss(self) -> Any:
        """The loss with its width, if it has one."""
        names = {"eps_insensitive": "eps", "huber": "delta"}
        return LOSSES[self.loss](**({names[self.loss]: self.width} if self.loss in names else {}))

    def __str__(self) -> str:
        scale = float(np.abs(self.y).max()) if self.y.dtype.kind == "f" else 1.0
        return (
            f"seed={self.seed} loss={self.loss} regularizer={self.regularizer[0]}:{self.regularizer[1]!s:.9} "
            f"C={self.C:.3g} normalize={self.normalize} gram={self.engine} X={self.X.dtype}{self.X.shape} "
            f"|X|={np.abs(self.X).max():.3g} |y|={scale:.3g} M={len(self.kernels)} tol={self.tol:g} "
            f"plain={self.plain}"
        )


def regularizer(spec: tuple[str, Any]) -> Any:
    """The package's regulariser of a spec."""
    name, value = spec
    if name == "lp":
        return kw.LpNorm(p=value)
    if name == "lp_penalty":
        return kw.LpNorm(p=value, form="penalty")
    if name == "block":
        return kw.BlockNorm(q=value)
    if name == "elasticnet":
        return kw.ElasticNet(l1_ratio=value)
    return kw.Wedge() if name == "wedge" else kw.Mahalanobis(value)


def draw(seed: int) -> Case:
    """The case of a seed."""
    rng = np.random.default_rng(seed)
    plain = bool(rng.random() < 0.5)
    loss = str(
        rng.choice([*CLASSIFICATION, *REGRESSION, "one_class"], p=[0.2, 0.13, 0.13, 0.2, 0.13, 0.13, 0.08])
    )
    X, unit = _features(rng, plain)
    y, width = _targets(rng, X, loss, plain)
    weight = _weights(rng, len(X), y if loss in CLASSIFICATION else None)
    M = int(rng.integers(1, 7))
    chosen = [_kernel(rng, X, unit, plain) for _ in range(M)]
    if M > 1 and rng.random() < 0.2:
        chosen[-1] = chosen[0]  # the same kernel twice
    return Case(
        seed=seed,
        X=X,
        y=y,
        sample_weight=weight,
        kernels=chosen,
        normalize=_normalize(rng, loss, plain, chosen),
        loss=loss,
        width=width,
        regularizer=_regularizer(rng, M, loss),
        C=_cost(rng, loss, weight, plain),
        engine=str(rng.choice(ENGINES)),
        fit_intercept=loss == "one_class" or bool(rng.random() < 0.8),
        tol=float(rng.choice([1e-2, 1e-3, 1e-4, 1e-6], p=[0.2, 0.5, 0.2, 0.1])),
        plain=plain,
    )


def _features(rng: np.random.Generator, plain: bool) -> tuple[Array, Array]:
    """Samples, and the unit of each column."""
    n, p = int(rng.integers(10, 61)), int(rng.integers(1, 6))
    X = rng.normal(size=(n, p))
    if rng.random() < 0.25:
        X = np.round(X)  # counts: ties everywhere
        X[0], X[1] = 1.0, -1.0  # and no constant column
    if rng.random() < 0.2:
        X[n // 2 : n // 2 + n // 4] = X[: n // 4]  # the same rows twice
    unit = np.ones(p)
    if not plain:
        kind = rng.choice(["none", "scale", "columns", "offset"])
        if kind == "scale":
            unit = np.full(p, 10.0 ** rng.uniform(-9, 9))
        elif kind == "columns":
            unit = 10.0 ** rng.uniform(-3, 3, size=p)
        X = X * unit + (10.0 ** rng.uniform(0, 5) if kind == "offset" else 0.0)
    return X.astype(np.float32 if rng.random() < 0.2 else np.float64), unit


def _targets(rng: np.random.Generator, X: Array, loss: str, plain: bool) -> tuple[Array, float]:
    """Labels or numbers, and the width of the loss in their units."""
    n = len(X)
    Z = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-300)
    score = (
        Z @ rng.normal(size=X.shape[1])
        + np.sin(2 * Z[:, 0])
        + rng.choice([0.1, 0.5, 2.0]) * rng.normal(size=n)
    )
    if loss in REGRESSION:
        scale = 1.0 if plain else 10.0 ** rng.uniform(-9, 9)
        shift = 0.0 if rng.random() < 0.7 else 10.0 * rng.normal()
        return scale * (score + shift), scale * float(rng.choice([0.01, 0.1, 0.5]))
    threshold = np.quantile(score, rng.choice([0.5, 0.2]))
    return np.where(score > threshold, "yes", "no"), 0.0


def _weights(rng: np.random.Generator, n: int, labels: Array | None) -> Array:
    """Sample weights: ones, any, or some of them zero."""
    kind = rng.choice(["ones", "any", "zeros"], p=[0.6, 0.2, 0.2])
    weight = np.ones(n) if kind == "ones" else rng.uniform(0.2, 3.0, size=n)
    if kind == "zeros":
        weight[rng.random(n) < 0.3] = 0.0
        for label in np.unique(labels) if labels is not None else [None]:
            rows = np.arange(n) if label is None else np.flatnonzero(labels == label)
            weight[rows[:3]] = 1.0
    return weight


def _kernel(rng: np.random.Generator, X: Array, unit: Array, plain: bool) -> Spec:
    """A kernel on some columns, its width in their units."""
    p = X.shape[1]
    columns = sorted(rng.choice(p, size=int(rng.integers(1, p + 1)), replace=False).tolist())
    kind = str(rng.choice(list(KERNELS), p=[0.4, 0.2, 0.25, 0.15]))
    size = float(np.mean(unit[columns]))
    width = float(10.0 ** rng.uniform(-2, 1))
    if kind == "linear":
        return kind, {}, columns
    if kind == "polynomial":
        return (
            kind,
            {
                "degree": int(rng.integers(2, 4)),
                "gamma": width / size**2,
                "coef0": float(rng.choice([0.0, 1.0])),
            },
            columns,
        )
    return kind, {"gamma": width / size ** (2 if kind == "rbf" else 1)}, columns


def _normalize(rng: np.random.Generator, loss: str, plain: bool, chosen: list[Spec]) -> str | None:
    """Any rule that leaves no kernel constant: products of single numbers on the sphere are +-1."""
    flat = any(kind in ("linear", "polynomial") and len(columns) == 1 for kind, _, columns in chosen)
    rules = (
        ["variance", "trace"] + ([] if flat else ["spherical"]) + ([] if loss == "one_class" else ["center"])
    )
    return str(rng.choice(rules)) if plain or rng.random() < 0.7 else None


def _regularizer(rng: np.random.Generator, M: int, loss: str) -> tuple[str, Any]:
    """A convex regulariser; the one-class loss has no optimum under penalties that grow like the norms."""
    choices: list[tuple[str, Any]] = [("lp", p) for p in (1, 1, 1, 4 / 3, 2, 4, np.inf)]
    choices += [
        ("lp_penalty", 2),
        ("elasticnet", 0.5),
        ("elasticnet", 0.1),
        ("block", 1.5),
        ("block", 3),
        ("block", np.inf),
    ]
    if loss != "one_class":
        choices += [("lp_penalty", 1), ("elasticnet", 1), ("wedge", None)]
    if rng.random() < 0.1:
        A = rng.normal(size=(M, M))
        return "mahalanobis", A @ A.T + M * np.eye(M)
    return choices[int(rng.integers(len(choices)))]


def _cost(rng: np.random.Generator, loss: str, weight: Array, plain: bool) -> float:
    if loss == "one_class":
        return 1.0 / (float(rng.choice([0.1, 0.5, 0.9])) * float(weight.sum()))
    return float(10.0 ** (rng.uniform(-2, 2) if plain else rng.uniform(-6, 6)))
