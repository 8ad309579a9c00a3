"""The methods of Varma & Babu (2009), Tables 2 and 3, with their grids."""

from __future__ import annotations

from typing import Any

import numpy as np
from _gmkl import Method, Split
from _selectors import LPSVM, BoostedSVMs, bahsic, importance
from sklearn.ensemble import AdaBoostClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

import kernelweave as kw
from kernelweave.kernels import RBF, Polynomial, per_feature
from kernelweave.solvers.kernel_gradient import L1, L2

COSTS, WIDTHS = (1.0, 10.0, 100.0), (0.01, 0.03, 0.1, 0.3, 1.0)
STRENGTHS = (1.0, 1e2, 1e3, 1e4, 1e5)
GAUSSIANS = [(C, width) for C in COSTS for width in WIDTHS]


def gmkl(C: float, penalty: Any) -> kw.GMKLClassifier:
    """A product of Gaussians, one width per feature."""
    return kw.GMKLClassifier(C=C, regularizer=penalty, tol=1e-3)


def mkl(C: float, regularizer: Any = None) -> kw.MKLClassifier:
    """A weighted sum of Gaussians, one per feature."""
    # the simplex in place of the l1 penalty: the same models, at other C
    return kw.MKLClassifier(
        per_feature(RBF(gamma=1.0)), regularizer=regularizer or kw.LpNorm(p=1), normalize=None, C=C, tol=1e-2
    )


def svm(C: float, gamma: float = 1.0) -> SVC:
    """A Gaussian SVM."""
    return SVC(C=C, gamma=gamma)


def linear(C: float) -> SVC:
    """A linear SVM."""
    return SVC(C=C, kernel="linear")


def logistic(C: float) -> LogisticRegression:
    """l1 logistic regression, the bias a feature like others."""
    return LogisticRegression(C=C, l1_ratio=1.0, solver="liblinear", random_state=0)


def stumps() -> AdaBoostClassifier:
    """50 of them."""
    return AdaBoostClassifier(n_estimators=50, random_state=0)


def each(*values: float) -> list[tuple[float]]:
    """One option per value."""
    return [(value,) for value in values]


def products(penalty: Any, costs: Any = COSTS, strengths: Any = STRENGTHS) -> Method:
    """GMKL on a grid."""
    return Method(gmkl, [(C, penalty(strength)) for C in costs for strength in strengths])


def methods(data: str) -> dict[str, Method]:
    """All that are tuned and rank features in the same way."""
    return {
        "GMKL": products(L2 if data == "liver" else L1),
        "MKL": Method(mkl, each(*COSTS)),
        "AdaBoost": Method(BoostedSVMs, each(*COSTS)),
        "AdaBoost, stumps": Method(stumps, [()]),
        "OWL-QN": Method(logistic, each(0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0)),
        "LP-SVM": Method(LPSVM, each(0.03, 0.1, 0.3, 1.0, 10.0)),
        "S-SVM": Method(linear, each(0.01, 0.1, 1.0, 10.0)),
        "BAHSIC": Method(svm, GAUSSIANS, bahsic),
        "uniform MKL": Method(lambda C: mkl(C, "uniform"), each(0.1, *COSTS)),
        "uniform GMKL": Method(svm, GAUSSIANS),
    }


def varied(variant: str, usual: Method) -> Method:
    """The method with something else about it."""
    if variant == "Gaussian SVM on its features":
        return Method(svm, GAUSSIANS, lambda X, y: np.argsort(-importance(usual.make(1.0).fit(X, y))))
    return {
        "l2 penalty": products(L2),
        "smaller C": products(L1, (0.03, 0.1, 0.3, 1.0), (0.1, 1.0, 10.0, 100.0, 1000.0)),
        "wider grid": Method(svm, [(C, g) for C in (0.1, *COSTS) for g in (0.001, 0.003, *WIDTHS)]),
        "C = 1000": Method(mkl, each(1000.0)),
    }.get(variant, usual)


def simple_mkl(parts: Split) -> Any:
    """MKL on the dictionary of Rakotomamonjy et al. (2008): kernels of unit trace, C tuned."""
    where = {"all": None, **{f"{k}": [k] for k in range(parts.X.shape[1])}}
    widths, degrees = (0.5, 1, 2, 5, 7, 10, 12, 15, 17, 20), (1, 2, 3)
    kernels: dict[str, Any] = {
        f"width {s}, {name}": RBF(gamma=0.5 / s**2, columns=columns)
        for s in widths
        for name, columns in where.items()
    }
    kernels |= {
        f"degree {p}, {name}": Polynomial(degree=p, columns=columns)
        for p in degrees
        for name, columns in where.items()
    }
    search = kw.MKLClassifierCV(
        kernels,
        regularizers=kw.LpNorm(p=1),
        Cs=(1.0, 10.0, 100.0),
        cv=StratifiedKFold(3, shuffle=True, random_state=0),
        normalize="trace",
        tol=1e-2,
    )
    return search.fit(parts.X, parts.y).best_estimator_
