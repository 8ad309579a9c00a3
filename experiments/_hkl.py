"""Hierarchical multiple kernel learning (Bach 2008) with polynomials, for comparison.

The kernel prod_i (1 + x_i z_i)^q is the sum of k_v(x, z) = prod_i binom(q, v_i) (x_i z_i)^v_i over all
exponents v in {0, ..., q}^p, which form a grid: v comes before w where v <= w in every feature. With D(v) the
nodes after v and v itself, and costs delta_v = growth^|v| (`root` for v = 0),

    min_{w, b}  C sum_i V(y_i, f(x_i)) + 1/2 Omega(w)^2,   Omega(w) = sum_v delta_v ||w_D(v)||

over the coefficients of z_v(x) = prod_i binom(q, v_i)^(1/2) x_i^v_i, f = sum_v w_v z_v + b. A product of
features is chosen only where all that comes before it is.

On a hull W (a set that holds what comes before its nodes), Omega^2 is the minimum of sum_v w_v^2 / zeta_v
over eta >= 0 with sum_v delta_v^2 eta_v = 1, where 1 / zeta_v = sum of 1 / eta_a over a <= v: the fit
alternates between ridge-like fits with weights zeta and eta_v = a_v / (delta_v Omega), a_v = ||w_D(v)||.

Certificate, over all (q + 1)^p kernels: with s_v = (z_v' alpha)^2,

    P - D <= P - dual_loss(alpha) + 1/2 max(kappa^2, max_t U_t),
    kappa  = max_a a_a / (delta_a eta_a)                             over the hull
    U_t    = sum_{w in D(t)} s_w / (sum_{t <= v <= w} delta_v)^2      t the first nodes outside of it

kappa bounds the dual norm on W because zeta is concave and homogeneous in eta; U_t those outside because
zeta_w <= sum pi_v^2 eta_v for any pi_v >= 0 of sum 1 over nodes v between t and w, here pi in proportion to
delta (a node that comes after several t counts with the first of them, as do all nodes between). U_t is a
product over features of small sums, so that no kernel outside of the hull is ever formed.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import comb
from sklearn.base import BaseEstimator, ClassifierMixin

from kernelweave.gram.lowrank import FactoredMatrix, StoredFactors
from kernelweave.losses import LOSSES
from kernelweave.solvers import Problem, best_intercept
from kernelweave.solvers.single import PrimalNewton

Node = tuple[int, ...]

#: share of eta that all nodes of a hull have in common: none is lost before the hull is solved
COMMON = 1e-4

#: fits on a hull between two looks at what is outside, most of them in all, and nodes that come in at once
FITS, MOST_FITS, AT_ONCE = 5, 500, 4

#: least entry of a factor that a product is divided by
SAFE = 1e-3


class HullFit(NamedTuple):
    """The fit on a hull."""

    w: np.ndarray
    intercept: float
    alpha: np.ndarray
    primal: float
    dual_loss: float
    kappa: float

    def gap(self, outside: float = 0.0) -> float:
        """(P - D) / P, with a bound of the squared dual norm outside of the hull."""
        return (self.primal - self.dual_loss + 0.5 * max(self.kappa**2, outside)) / self.primal


class HKL(ClassifierMixin, BaseEstimator):
    """Two classes; features should have unit variance.

    Parameters
    ----------
    C : float
    degree : int
        q.
    growth, root : float
        delta_v = growth^|v|, and that of v = 0; 4 and 0.1 are those of the implementation Bach published.
    loss : str
        "logistic" as there, or another of kernelweave.
    tol : float
        Relative duality gap, all kernels counted.
    max_kernels : int
        Largest hull.
    certified : bool
        Whether the hull grows until the gap over all kernels is small. Otherwise it grows as long as a kernel
        next to it lowers P on its own, which is necessary but does not see products that help only deeper in
        the grid, and `gap_` is that over the hull.
    """

    def __init__(
        self,
        C: float = 1.0,
        degree: int = 2,
        growth: float = 4.0,
        root: float = 0.1,
        loss: str = "logistic",
        tol: float = 1e-2,
        max_kernels: int = 100,
        certified: bool = True,
    ) -> None:
        self.C = C
        self.degree = degree
        self.growth = growth
        self.root = root
        self.loss = loss
        self.tol = tol
        self.max_kernels = max_kernels
        self.certified = certified

    def fit(self, X: np.ndarray, y: np.ndarray) -> HKL:
        """Let the hull grow until no kernel outside can lower P by more than `tol`."""
        self.classes_, labels = np.unique(y, return_inverse=True)
        target = np.where(labels[:, None] == 1, 1.0, -1.0)
        problem = Problem(target, LOSSES[self.loss](), np.full((len(X), 1), float(self.C)))
        self.hull_, self.n_fits_ = [(0,) * X.shape[1]], 0
        eta, alpha, grid = np.full(1, 1.0 / self.root**2), None, Grid(X, self.degree, self.growth)
        while True:
            found, eta = self._on_hull(problem, X, eta, alpha)
            alpha, sources = found.alpha[:, None], self._sources()
            room = min(AT_ONCE, self.max_kernels - len(self.hull_))
            new = self._needed(X, found, sources)[:room] if self.n_fits_ < MOST_FITS else []
            if not new:
                if found.gap() > 0.5 * self.tol and self.n_fits_ < MOST_FITS:
                    continue
                bounds = np.array([grid.bound(found.alpha, node) for node in sources if self.certified])
                self.gap_ = found.gap(float(bounds.max(initial=0.0)))
                if self.gap_ <= self.tol or room == 0 or not sources or self.n_fits_ >= MOST_FITS:
                    break
                new = [sources[k] for k in np.argsort(-bounds, kind="stable")[:room]]
            self.hull_ += new
            share = 0.5 / len(self.hull_)
            eta = np.append((1.0 - share * len(new)) * eta, share / self._costs(new) ** 2)
        self.coefficients_, self.intercept_, self.objective_ = found.w, found.intercept, found.primal
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """f."""
        return self._features(X) @ self.coefficients_ + self.intercept_

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Labels."""
        return self.classes_[(self.decision_function(X) > 0).astype(int)]

    @property
    def feature_importances_(self) -> np.ndarray:
        """Norm of the part of f that reads a feature."""
        return np.sqrt((self.coefficients_**2) @ (np.array(self.hull_) > 0))

    # -- on a hull ------------------------------------------------------------------------------------

    def _on_hull(
        self, problem: Problem, X: np.ndarray, eta: np.ndarray, alpha: np.ndarray | None
    ) -> tuple[HullFit, np.ndarray]:
        """Some fits on the hull, each followed by eta of its norms."""
        Z, delta, nodes = self._features(X), self._costs(self.hull_), np.array(self.hull_)
        before = (nodes[:, None] <= nodes).all(axis=2)  # row a, column v: a <= v
        for _ in range(FITS):
            zeta = 1.0 / (before.T @ (1.0 / eta))
            K = FactoredMatrix(StoredFactors([Z * np.sqrt(zeta)]), np.ones(1))
            alpha = PrimalNewton().solve(K, problem, 0.01 * self.tol, alpha).alpha
            self.n_fits_ += 1
            w = zeta * (Z.T @ alpha[:, 0])
            norms = np.sqrt(before @ w**2)
            omega, f = float(delta @ norms), (Z @ w)[:, None]
            b = best_intercept(problem, f)
            primal, kappa = problem.primal_loss(f, b) + 0.5 * omega**2, float((norms / (delta * eta)).max())
            found = HullFit(w, float(b[0]), alpha[:, 0], primal, problem.dual_loss(alpha), kappa)
            if found.gap() <= 0.5 * self.tol or omega == 0.0:
                break
            eta = (1.0 - COMMON) * norms / (delta * omega) + COMMON / (delta**2 * len(delta))
        return found, eta

    def _features(self, X: np.ndarray) -> np.ndarray:
        """z_v of the hull, one column per node; the constant is left to the intercept."""
        columns = []
        for node in self.hull_:
            read = np.flatnonzero(node)
            power = np.array(node)[read]
            scale = np.sqrt(comb(self.degree, power).prod())
            columns.append(scale * (X[:, read] ** power).prod(axis=1) if len(read) else np.zeros(len(X)))
        return np.column_stack(columns)

    def _costs(self, nodes: list[Node]) -> np.ndarray:
        depth = np.array([sum(node) for node in nodes])
        return np.where(depth > 0, self.growth**depth, self.root)

    # -- outside of it ----------------------------------------------------------------------------------

    def _sources(self) -> list[Node]:
        """Nodes outside of the hull whose predecessors are all in it."""
        inside, found = set(self.hull_), {}
        for node in self.hull_:
            for i in range(len(node)):
                child = (*node[:i], node[i] + 1, *node[i + 1 :])
                if child[i] <= self.degree and child not in inside and child not in found:
                    parents = ((*child[:k], e - 1, *child[k + 1 :]) for k, e in enumerate(child) if e)
                    if all(parent in inside for parent in parents):
                        found[child] = None
        return list(found)

    def _needed(self, X: np.ndarray, found: HullFit, sources: list[Node]) -> list[Node]:
        """Sources that lower P on their own, the most promising first: s_t / delta_t^2 > kappa^2."""
        if not sources:
            return []
        beside = HKL(degree=self.degree)
        beside.hull_ = sources
        squares = (beside._features(X).T @ found.alpha) ** 2 / self._costs(sources) ** 2
        wanted = int((squares > found.kappa**2 * (1.0 + self.tol)).sum())
        return [sources[k] for k in np.argsort(-squares, kind="stable")[:wanted]]


class Grid:
    """What bounds the kernels after a node: U_t = alpha' (product over features of small sums) alpha."""

    def __init__(self, X: np.ndarray, degree: int, growth: float) -> None:
        self.X, self.degree, self.growth = X, degree, growth

    def factor(self, feature: int, first: int) -> np.ndarray:
        """sum_j binom(q, j) (x_i z_i)^j / (growth^first + ... + growth^j)^2 over j >= first."""
        products = np.outer(self.X[:, feature], self.X[:, feature])
        total = np.zeros_like(products)
        for power in range(self.degree, first - 1, -1):  # Horner's scheme
            cost = float((self.growth ** np.arange(first, power + 1)).sum())
            total = total * products + comb(self.degree, power) / cost**2
        return total * products**first

    @cached_property
    def roots(self) -> tuple[np.ndarray, bool]:
        """The product of the factors of the root, and whether it may be divided by them."""
        total, safe = np.ones((len(self.X), len(self.X))), True
        for feature in range(self.X.shape[1]):
            own = self.factor(feature, 0)
            safe = safe and float(own.min()) > SAFE
            total *= own
        return total, safe

    def bound(self, alpha: np.ndarray, start: Node) -> float:
        """U_t."""
        total, safe = self.roots
        if safe:
            for feature in np.flatnonzero(start):
                total = total / self.factor(feature, 0) * self.factor(feature, start[feature])
        else:
            total = np.ones_like(total)
            for feature, first in enumerate(start):
                total *= self.factor(feature, first)
        return float(alpha @ total @ alpha)
