"""Cutting planes on the weights: semi-infinite programs, and the last resort of other methods."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import linprog

from ..._typing import FloatArray
from ...regularizers import Regularizer
from ..base import MKLSolver, State
from ..certificate import relative
from ..run import STILL, Run
from ..single import SingleSolver
from .newton_weights import Coordinates, minimise_model

#: when other methods hand over: how far to go from the best weights towards those where the planes are lowest
HALF_WAY = 0.5

#: planes per kernel that may bring no progress: before there are as many as weights, they may meet nowhere
#: near the optimum
PATIENCE = 2

#: share of the way towards the largest possible weight
INSIDE = 0.9

#: share of the distance between the bounds that a machine may leave open
MACHINE_SHARE = 0.1

#: most planes of either kind, of which the latest are kept; and the accuracy of the programs
MOST_PLANES, EXACT = 150, 1e-10

#: share of the newest plane to start from, most Newton steps on the shares, and relative step of differences
NEW_SHARE, MOST_STEPS, DIFFERENCE = 0.1, 50, 1e-6


class CuttingPlanes(MKLSolver):
    """Planes below F(d) = J(d) + 1/2 h(d), with J(d) the value of the machine at weights d >= 0.

    Every feasible alpha, the solution of a machine or not, gives a plane below J,

        J(d) >= -sum_i C_i V*(y_i, -alpha_i / C_i) - 1/2 sum_m d_m s_m,   s_m = alpha' K_m alpha

    which is a constraint of the semi-infinite program  min t + 1/2 h(d)  over t >= all planes. The
    program with the planes of the machines so far bounds the optimum from below, the best machine bounds it
    from above, and the next machine is trained where the planes are lowest: with p = 1 the program is
    linear, the SILP of Sonnenburg et al. (2006). With p > 1 it is the SIP of Kloft et al. (2009), solved by
    way of its dual, which has a share x_k of every plane instead of a weight of every kernel,

        max_{x >= 0, sum(x) = 1}  -sum_k x_k sum_i C_i V*(y_i, -alpha_ki / C_i) - Omega*(r),
        r_m^2 = sum_k x_k s_km

    The shares combine the alphas to one alpha whose dual value is no less than the bound and which belongs to
    the weights where the planes meet. This alpha is certified.

    Weights jump from one corner of the planes to another, so that many machines are needed. Half way between
    the best weights and those where the planes are lowest, ``towards=0.5``, a machine is either better than
    the best, or its plane cuts off where the others were lowest (Ben-Ameur & Neto 2007): `NewtonWeights` ends
    with such steps where J has no derivative because alpha is not unique (kernels of low rank, small C,
    ties). Regularisers that make weights zero without bounding their sum (elastic net, wedge, penalties) need
    them too.

    Parameters
    ----------
    single : str or SingleSolver, default="auto"
    towards : float, default=1.0
        How far to go from the best weights towards those where the planes are lowest, above 0 and up to 1.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.gram import DenseGram
    >>> from kernelweave.losses import Hinge
    >>> from kernelweave.regularizers import LpNorm
    >>> from kernelweave.solvers import Problem
    >>> x = np.linspace(-1, 1, 20)[:, None]
    >>> gram = DenseGram([x @ x.T, np.exp(-((x - x.T) ** 2))])
    >>> problem = Problem(np.sign(x), Hinge(), np.full((20, 1), 0.01))
    >>> CuttingPlanes().solve(problem, gram, LpNorm(p=1), tol=1e-6).converged
    True
    """

    name = "silp"

    def __init__(self, single: str | SingleSolver = "auto", towards: float = 1.0) -> None:
        super().__init__(single)
        self.towards = towards

    def can_handle(self, regularizer: Regularizer) -> bool:
        if regularizer.sparse:  # where nothing bounds the weights, whole steps may go in circles
            return regularizer.convex and regularizer.priced and (regularizer.tied or self.towards < 1.0)
        return regularizer.convex and not regularizer.ascends and hasattr(regularizer, "weights_from_dual")

    def init(self, run: Run, norms: FloatArray) -> FloatArray:
        if not run.problem.loss.separable:
            raise ValueError(f"{type(run.problem.loss).__name__} has no conjugate; use solver='auto'.")
        if not 0.0 < self.towards <= 1.0:
            raise ValueError(f"towards={self.towards!r} must be above 0 and at most 1.")
        weights, M = super().init(run, norms), run.gram.n_kernels
        if self.towards == 1.0:
            self.patience = (max(STILL[0], PATIENCE * M), STILL[1])
        rule = run.regularizer
        self._T = Coordinates.under(rule, M) if rule.sparse else Coordinates(np.ones(M))
        self._planes = Planes(self._T, run.regularizer)
        self._best: State | None = None  # the state of least F, and an upper bound of F
        self._least = np.inf
        self._left = 1.0  # relative distance of the bounds
        start = run.problem.start()
        self._planes.add(run.problem.dual_loss(start), run.gram.quad(start), start, self._T.of(weights))
        return weights

    def restart(self, run: Run, state: State) -> FloatArray:
        self.init(run, np.ones(run.gram.n_kernels))
        self._learn(run, state)
        weights = self.next_weights(run, state)
        return state.weights if weights is None else weights

    def machine_tol(self, run: Run, previous: State | None) -> float:
        """A share of the distance between the bounds: a coarse machine neither improves nor cuts off."""
        return MACHINE_SHARE * max(min(self._left, self._first_tol), run.tol)

    def train(
        self, run: Run, weights: FloatArray, previous: State | None, alpha: FloatArray | None = None
    ) -> State:
        """Train a machine, and return the best iterate that all machines together can certify."""
        trained = super().train(run, weights, previous, alpha)
        self._learn(run, trained)
        state = min([trained, *self._combined(run)], key=lambda state: state.residual)
        if state is not trained:
            run.K = run.gram.combine(state.weights)
        return state

    def next_weights(self, run: Run, state: State) -> FloatArray | None:
        if self._lowest is None:
            return None
        z = self._z(self._best)
        aim = z + self.towards * (self._lowest.z - z)
        if not run.regularizer.tied:  # within the domain, where the price is finite
            aim = np.minimum(aim, z + INSIDE * (run.regularizer.max_weight - z))
        return self._T.weights(aim)

    def _learn(self, run: Run, state: State) -> None:
        """Add the planes of a machine, remember it if it is the best, and find where all are lowest."""
        price, (_, value) = run.regularizer.price(state.weights), self.bounds(run, state)
        if value < self._least:
            self._best, self._least = state, value
        self._planes.add(run.problem.dual_loss(state.alpha), state.squares, state.alpha, self._z(state))
        if run.regularizer.sparse:
            self._planes.add_price(price, self._z(state))
        upper = self._least
        self._lowest = self._planes.lowest(abs(upper), self._z(self._best), self._left)
        if self._lowest is not None:
            self._left = max(relative(upper - self._lowest.value, upper), 0.0)

    def _z(self, state: State | None) -> FloatArray:
        assert state is not None
        return np.maximum(self._T.of(state.weights), 0.0)

    def _combined(self, run: Run) -> list[State]:
        """The alpha of all machines together, with the best weights and those where the planes are lowest.

        Functions of low rank have coefficients that need not belong to any alpha: those of the best machine
        are used.
        """
        if self._lowest is None or self._best is None:
            return []
        alpha, best = run.problem.feasible(self._lowest.alpha), self._best
        squares = run.gram.quad(alpha)
        if best.coefficients is not None:
            parts = (best.weights, alpha, best.fitted, squares, np.inf, best.coefficients)
            return [self.certified(run, *parts)]
        places = (best.weights, self._T.weights(self._lowest.z))
        return [self.certified(run, d, alpha, run.gram.dot(d, alpha), squares, np.inf) for d in places]


@dataclass(frozen=True)
class Lowest:
    """Where the planes together are lowest: their value there, z, and the alphas of those that meet."""

    value: float
    z: FloatArray
    alpha: FloatArray


class Planes:
    """Planes a - g'z below J and below 1/2 h, in the coordinates d = T z, z >= 0.

    The price needs no planes if weights do not become zero: it is known through Omega*.

    Parameters
    ----------
    coordinates : Coordinates
        T.
    regularizer : Regularizer
    """

    def __init__(self, coordinates: Coordinates, regularizer: Regularizer) -> None:
        self.T, self.regularizer = coordinates, regularizer
        self.values: list[tuple[float, FloatArray]] = []  # below J
        self.alphas: list[FloatArray] = []
        self.prices: list[tuple[float, FloatArray]] = []  # below 1/2 h
        self.shares: FloatArray = np.ones(1)  # of the planes below J, where they were lowest

    def add(self, dual_loss: float, squares: FloatArray, alpha: FloatArray, z: FloatArray) -> None:
        """The plane of a feasible alpha, where weights are bent the one that touches at z."""
        constant, slopes = self.T.tangent(np.maximum(squares, 0.0), z)
        self.values = [*self.values, (dual_loss - 0.5 * constant, 0.5 * slopes)][-MOST_PLANES:]
        self.alphas = [*self.alphas, alpha][-MOST_PLANES:]

    def add_price(self, price: float, z: FloatArray) -> None:
        """The plane that touches 1/2 h at z."""
        slopes = 0.5 * self.regularizer.price_slopes(z)[0]
        self.prices = [*self.prices, (0.5 * price - float(slopes @ z), -slopes)][-MOST_PLANES:]

    def lowest(self, unit: float, best: FloatArray, left: float) -> Lowest | None:
        """min_z max_k (a_k - g_k'z) + the same for the price; None if rounding leaves no solution.

        The search is around `best`, where the bounds were a share `left` of `unit` apart.
        """
        if not self.regularizer.sparse:
            return self._mixture()
        return self._corner(unit, best, left) or self._corner(unit, best, 1.0)

    def _mixture(self) -> Lowest:
        """max a'x - Omega*(r), r_m^2 = 2 sum_k x_k g_km, over shares x >= 0 with sum 1, by Newton steps.

        The slopes are a_k - g_k'd, d = 2 dOmega*/d(r^2) the weights of r; their derivatives are differences.
        """
        rule: Any = self.regularizer
        a, G = np.array([a for a, _ in self.values]), np.array([g for _, g in self.values])
        old = self.shares[1 - len(a) :] + EXACT  # those of planes that are still here
        x = np.append((1.0 - NEW_SHARE) * old / old.sum(), NEW_SHARE)

        def value(x: FloatArray) -> float:
            return float(a @ x) - float(rule.conjugate(np.sqrt(2.0 * x @ G)))

        for _ in range(MOST_STEPS):
            s = 2.0 * x @ G
            d, known = rule.weights_from_dual(np.sqrt(s)), value(x)
            slopes = a - G @ d
            if slopes.max() - x @ slopes <= EXACT * abs(known):
                break
            steps = DIFFERENCE * s.max() / np.maximum(2.0 * G.max(axis=1), 1e-300)
            moved = [
                rule.weights_from_dual(np.sqrt(s + 2.0 * t * g)) - d for t, g in zip(steps, G, strict=True)
            ]
            hessian = np.array(moved) @ G.T / np.maximum(steps, 1e-300)[:, None]
            aim = minimise_model(0.5 * (hessian + hessian.T), slopes, x, np.ones(len(x)), tied=True)
            shorter = (x + 0.5**k * (aim - x) for k in range(30))
            better = next((trial for trial in shorter if value(trial) > known), None)
            if better is None:
                break
            x = better
        self.shares = x
        d = rule.weights_from_dual(np.sqrt(2.0 * x @ G))
        return Lowest(value(x), d, np.tensordot(x, np.array(self.alphas), axes=1))

    def _corner(self, unit: float, best: FloatArray, left: float) -> Lowest | None:
        """The same minimum by a linear program.

        Variables are z less `best`, in units of its largest entry, and the two maxima less those at `best`,
        in units of `unit`, where these are not zero. As the bounds come nearer, both are magnified, because a
        linear program is solved only to a number of digits of its coefficients. The multipliers of the first
        planes sum to one, and combine their alphas.
        """
        tied, M, left = self.regularizer.tied, len(best), max(left, EXACT)
        size = float(best.max()) or float(self.regularizer.initial_weights(1)[0])
        unit = unit or size * max(float(np.abs(g).max()) for _, g in self.values) or 1.0
        size, unit = left**0.5 * size, left * unit
        first, second = (_rows(planes, best, size, unit) for planes in (self.values, self.prices))
        rows = np.block(
            [
                [-first[1], -np.ones((len(first[0]), 1)), np.zeros((len(first[0]), 1))],
                [-second[1], np.zeros((len(second[0]), 1)), -np.ones((len(second[0]), 1))],
            ]
        )
        ends = zip(-best / size, (self.regularizer.max_weight - best) / size, strict=True)
        found = linprog(
            np.append(np.zeros(M), [1.0, 1.0]),
            A_ub=rows,
            b_ub=-np.append(first[0], second[0]),
            A_eq=np.append(np.full(M, 1.0), [0.0, 0.0])[None] if tied else None,
            b_eq=[(1.0 - best.sum()) / size] if tied else None,
            bounds=[*ends, (None, None), (None, None)],
            options={"primal_feasibility_tolerance": EXACT, "dual_feasibility_tolerance": EXACT},
        )
        if found.status != 0:
            return None
        shares = np.maximum(-found.ineqlin.marginals[: len(first[0])], 0.0)
        z = np.maximum(best + size * found.x[:M], 0.0)
        alpha = np.tensordot(shares / shares.sum(), np.array(self.alphas), axes=1)
        value = unit * float(found.fun) + first[2] + second[2]
        return Lowest(value, z / z.sum() if tied else z, alpha)


def _rows(
    planes: list[tuple[float, FloatArray]], best: FloatArray, size: float, unit: float
) -> tuple[FloatArray, FloatArray, float]:
    """Values of planes at `best` less the largest, and their downward slopes, in units; and the largest."""
    slopes = np.array([g for _, g in planes])
    values = np.array([a for a, _ in planes]) - slopes @ best
    return (values - values.max()) / unit, size / unit * slopes, float(values.max())
