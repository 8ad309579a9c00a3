"""Second-order steps on the weights, for regularisers that make some of them zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import cho_solve
from sklearn.utils import gen_batches

from ..._linalg import distinct, positive_factor
from ..._typing import FloatArray, IntArray
from ...gram import Gram
from ...gram.some_rows import RowsOfSum
from ...gram.sources import take_square
from ...regularizers import Regularizer
from ..base import MKLSolver, State
from ..growing import Pilot
from ..problem import Problem
from ..run import SLOW, Run
from ..single import SingleSolver
from ..single._box_qp import BoxQP
from ..single._face import Face
from ..single.joint_newton import System

#: a machine is solved to this share of the gap left, but no finer than this share of the tolerance
FINE, FINEST = 0.03, 0.2

#: gap above which the Hessian is computed in single precision, if so many samples are free: a step from there
#: need not be exact, and the certificate takes no part in this
ROUGH, MANY_FREE = 1e-4, 500

#: share of g'A^-1 g that a solution in single precision may leave; rows that are scaled while in the cache
DIGITS, CACHED_ROWS = 0.01, 64

#: accuracy of the linear systems behind the Hessian of a loss that couples samples
EXACT = 1e-4

#: halvings that find the multiplier of a sum
HALVINGS = 40


class Response(NamedTuple):
    """How the value of the machine, and its dual variables, respond to weights d + sum_l t_l e_l.

    Attributes
    ----------
    hessian : ndarray of shape (k, k)
        d2J / dt_m dt_l = g_m' P g_l.
    moves : list of (ndarray of int, ndarray of shape (n_rows, k)), optional
        For every output the samples that are free to move, and P g_l there: to first order alpha moves by
        -sum_l t_l P g_l. None where these are not computed.
    """

    hessian: FloatArray
    moves: list[tuple[IntArray, FloatArray]] | None = None


class NewtonWeights(MKLSolver):
    """Newton steps on F(d) = J(d) + 1/2 h(d), with J(d) the value of the machine at weights d >= 0.

        J(d) = max_alpha -sum_i C_i V*(y_i, -alpha_i / C_i) - 1/2 alpha' K_d alpha
        dJ/dd_m = -s_m / 2,   d2J/dd_m dd_l = g_m' P g_l,   g_m = K_m alpha on the free samples

    where P inverts K_d + diag(V*'' / C) on the samples free to move, on the subspace that keeps
    sum(alpha). The quadratic model is minimised exactly over d >= 0 (or the simplex), so weights
    become exactly zero and can return; a step that does not lower F is shortened by
    interpolation, and the next ones are not much longer. Only kernels that carry weight or whose
    s_m asks for some enter the model. Chapelle & Rakotomamonjy (2008), for every loss and every price
    with two derivatives. Where weights are bent, d_m = d(z_m) with z on the simplex (the elastic net as a
    constraint), the steps are those of F(d(z)), which is convex, as J falls and d(z) is concave.

    Parameters
    ----------
    single : str or SingleSolver, default="auto"
    max_entering : int, default=20
        Most kernels without weight that may enter at once, the most promising first.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.gram import DenseGram
    >>> from kernelweave.losses import Squared
    >>> from kernelweave.regularizers import LpNorm
    >>> from kernelweave.solvers import Problem
    >>> x = np.linspace(-1, 1, 20)[:, None]
    >>> gram = DenseGram([x @ x.T, np.exp(-((x - x.T) ** 2))])
    >>> problem = Problem(x, Squared(), np.ones((20, 1)))
    >>> NewtonWeights().solve(problem, gram, LpNorm(p=1), tol=1e-6).state.weights
    array([1., 0.])
    """

    name = "newton"
    pilot_share, pilot_tol, rough_looks, foresees = 8, 0.005, True, True
    needs_products = True
    patience = SLOW

    def __init__(self, single: str | SingleSolver = "auto", max_entering: int = 20) -> None:
        super().__init__(single)
        self.max_entering = max_entering

    def can_handle(self, regularizer: Regularizer) -> bool:
        return regularizer.convex and regularizer.sparse and regularizer.priced

    def may_begin_at(self, regularizer: Regularizer, weights: FloatArray) -> bool:
        """Whether they are in the domain of the model: in order, and below their bound, if there is one."""
        z = Coordinates.under(regularizer, len(weights)).of(weights)
        return bool((z >= 0.0).all() and (z < regularizer.max_weight).all())

    def init(self, run: Run, norms: FloatArray) -> FloatArray:
        self._best: State | None = None
        self._share, self._trusted = 1.0, 1.0  # of the last step of the model, and of the next
        self._T = Coordinates.under(run.regularizer, run.gram.n_kernels)
        return super().init(run, norms)

    def successor(self, run: Run) -> MKLSolver | None:
        """Cutting planes: J has no derivative where alpha is not unique, and Newton steps may go in circles.

        For a loss that couples samples J has a derivative: alpha is a gradient.
        """
        from .cutting_planes import HALF_WAY, CuttingPlanes

        return CuttingPlanes(self.single, HALF_WAY) if run.problem.loss.separable else None

    def learn_from(self, run: Run, pilot: Pilot) -> None:
        # the weights are nearly right, and a coarse machine would hide by how much
        self._first_tol = 0.5 * run.tol

    def machine_tol(self, run: Run, previous: State | None) -> float:
        """Fine: s_m of a coarse machine may be what keeps the gap open, and cannot tell better weights."""
        wanted = super().machine_tol(run, previous)
        return wanted if previous is None else min(wanted, max(FINE * previous.residual, FINEST * run.tol))

    def next_weights(self, run: Run, state: State) -> FloatArray:
        best = self._best
        if best is not None and not state.weights.any():
            return 0.1 * best.weights  # zero was not certified, and there is no model around it
        if best is not None and self.bounds(run, state)[0] > self.bounds(run, best)[1]:
            return self._interpolate(run, best, state)
        self._best = state
        return self._model_minimum(run, state)

    def _model_minimum(self, run: Run, state: State) -> FloatArray:
        """Weights d = T z where the quadratic model is least, z >= 0."""
        z, rule = np.maximum(self._T.of(state.weights), 0.0), run.regularizer
        slopes, curvatures = rule.price_slopes(z)
        descent = 0.5 * (self._T.tangent(state.squares, z)[1] - slopes)
        chosen = self._candidates(z, descent, rule.tied)
        response = self._response(run, state, self._T.columns(chosen, z))
        bows = curvatures - self._T.curvatures(state.squares, z)
        hessian = response.hessian + np.diag(0.5 * bows[chosen])
        room = rule.max_weight - z[chosen]
        # within the domain, and only as far as the model can be trusted
        reach = 10.0 * float(z.max()) or float(rule.initial_weights(1)[0])
        upper = np.minimum(z[chosen] + 0.9 * room, reach)
        moved = np.zeros_like(z)
        upper = np.ones(len(chosen)) if rule.tied else upper
        moved[chosen] = minimise_model(hessian, descent[chosen], z[chosen], upper, rule.tied)
        moved[moved <= 1e-14 * moved.max()] = 0.0  # zero up to rounding
        if not rule.tied and 0.0 < float(moved.sum()) < 0.1 * float(z.sum()):
            moved = 0.1 * z + 0.9 * moved  # far below, the value of the machine rises faster than its model
        self._share, self._trusted = self._trusted, min(1.0, 2.0 * self._trusted)
        moved = z + self._share * (moved - z) if self._share < 1.0 else moved
        self.moved = moved_alpha(run.problem, state.alpha, response.moves, moved[chosen] - z[chosen])
        return self._T.weights(moved)

    def _candidates(self, z: FloatArray, descent: FloatArray, tied: bool) -> IntArray:
        """Coordinates that are positive, and the steepest of those that want to become so."""
        level = float(z @ descent) / float(z.sum()) if tied else 0.0
        entering = np.flatnonzero((descent > level) & (z == 0.0))
        entering = entering[np.argsort(-descent[entering], kind="stable")][: self.max_entering]
        return np.concatenate([np.flatnonzero(z), entering])

    def _response(self, run: Run, state: State, directions: FloatArray) -> Response:
        return response_to_weights(run.problem, run.gram, state, run.K, directions)

    def _interpolate(self, run: Run, best: State, trial: State) -> FloatArray:
        """A point between two, where the parabola through F(best), its slope, and F(trial) is least."""
        z = self._T.of(best.weights)
        step = self._T.of(trial.weights) - z
        rise = self.bounds(run, trial)[0] - self.bounds(run, best)[1]
        price_slopes, _ = run.regularizer.price_slopes(z)
        slope = 0.5 * float((price_slopes - self._T.tangent(best.squares, z)[1]) @ step)
        t = -0.5 * slope / max(rise - slope, 1e-300) if slope < 0 and np.isfinite(rise) else 0.5
        t = min(max(t, 0.05), 0.5)
        self._share *= t
        self._trusted = min(1.0, 2.0 * self._share)
        return self._T.weights(z + t * step)


class Coordinates:
    """d = T z, with T a matrix, or a vector for a diagonal one: many kernels need no M x M matrix.

    Where weights are bent, d_m is a function of its share z_m instead.

    Parameters
    ----------
    T : ndarray of shape (M, M) or (M,)
    bent : Regularizer, optional
        Knows the function.
    """

    def __init__(self, T: FloatArray, bent: Any = None) -> None:
        self.T, self.rule = T, bent
        self.diagonal = self.T.ndim == 1

    @classmethod
    def under(cls, regularizer: Regularizer, n_kernels: int) -> Coordinates:
        """Those in which a regulariser makes weights zero."""
        return cls(regularizer.generators(n_kernels), regularizer if regularizer.bent else None)

    def of(self, weights: FloatArray) -> FloatArray:
        """The coordinates z of weights."""
        if self.rule is not None:
            return np.asarray(self.rule.shares(weights))
        return weights / self.T if self.diagonal else np.linalg.solve(self.T, weights)

    def weights(self, z: FloatArray) -> FloatArray:
        """The weights at z."""
        if self.rule is not None:
            return np.asarray(self.rule.bend(z)[0])
        return self.T * z if self.diagonal else self.T @ z

    def tangent(self, squares: FloatArray, z: FloatArray) -> tuple[float, FloatArray]:
        """c and g of the tangent c + g'z at z of the function s'd(z)."""
        if self.rule is not None:
            weights, slopes, _ = self.rule.bend(z)
            return float(squares @ (weights - slopes * z)), squares * slopes
        return 0.0, squares * self.T if self.diagonal else squares @ self.T

    def curvatures(self, squares: FloatArray, z: FloatArray) -> FloatArray:
        """Second derivatives of s'd(z)."""
        return np.zeros_like(z) if self.rule is None else np.asarray(squares * self.rule.bend(z)[2])

    def columns(self, chosen: IntArray, z: FloatArray) -> FloatArray:
        """Derivatives of the weights in some coordinates, in rows."""
        if not self.diagonal:
            return np.asarray(self.T[:, chosen].T)
        found = np.zeros((len(chosen), len(self.T)))
        slopes = self.T if self.rule is None else self.rule.bend(z)[1]
        found[np.arange(len(chosen)), chosen] = slopes[chosen]
        return found


def minimise_model(
    hessian: FloatArray, descent: FloatArray, start: FloatArray, upper: FloatArray, tied: bool
) -> FloatArray:
    """min_x -descent'(x - start) + 1/2 (x - start)' H (x - start), 0 <= x <= upper, sum(x) = 1 when tied."""
    H = hessian + 1e-12 * max(float(hessian.diagonal().max()), 1e-300) * np.eye(len(start))
    x = start / start.sum() if tied else start.copy()
    qp = BoxQP(H, descent + H @ start, 0.0, np.zeros(len(start)), upper, tied)
    eps = 1e-10 * max(float(np.abs(descent).max()), 1e-300)
    qp.descend(x, H @ x - qp.linear, eps, 100_000)
    return x / x.sum() if tied else x


def n_free(problem: Problem, state: State) -> int:
    """The largest number of samples of an output that are free to move."""
    if not problem.loss.separable or problem.loss.coupled:
        return len(state.alpha)
    curvature = problem.loss.dual_curvature(problem.y, state.alpha / problem.C)
    return int(np.isfinite(curvature).sum(axis=0).max())


def moved_alpha(
    problem: Problem, alpha: FloatArray, moves: list[tuple[IntArray, FloatArray]] | None, steps: FloatArray
) -> FloatArray:
    """alpha at weights that changed by `steps`, to first order, in the box and with its sums.

    Without `moves` it is what it was. Samples that are not free keep theirs. With (lower_i, upper_i) the box
    of a sample, which ends at zero where V* has a kink there, alpha_i becomes min(max(alpha_i - (P G t)_i -
    b, lower_i), upper_i), b such that the sum is what it was.
    """
    if moves is None:
        return alpha
    found, bounds, loss = alpha.copy(), problem.box(), problem.loss
    kinked = hasattr(loss, "linear_dual") and loss.linear_dual(problem.y)[1] > 0.0
    for k, (rows, change) in enumerate(moves):
        old = alpha[rows, k]
        lower, upper = (bound[rows, k] for bound in bounds)
        if kinked:
            lower, upper = np.where(old > 0.0, 0.0, lower), np.where(old < 0.0, 0.0, upper)
        new = old - change @ steps
        found[rows, k] = (
            _with_sum_of(old, new, lower, upper) if problem.fit_intercept else np.clip(new, lower, upper)
        )
    return found


def _with_sum_of(old: FloatArray, new: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """min(max(new - b, lower), upper) with b such that the sum is that of `old`, which is in the box."""
    found, missing, ends = old, 0.0, (new - old) if len(old) else np.zeros(1)
    total, low, high = float(old.sum()), float(ends.min()), float(ends.max())
    for _ in range(HALVINGS):
        b = 0.5 * (low + high)
        found = np.clip(new - b, lower, upper)
        missing = total - float(found.sum())
        low, high = (low, b) if missing > 0.0 else (b, high)
    inside = (found > lower) & (found < upper)
    found[inside] += missing / max(int(inside.sum()), 1)  # rounding
    return found


def response_to_weights(
    problem: Problem, gram: Gram, state: State, K: Any, directions: FloatArray | None = None
) -> Response:
    """How J(d), the value of the machine at weights d, and its alpha respond to d: by g_m' P g_l and P g_m.

    Here g_m = K_m alpha, and P inverts K_d + diag(V*'' / C) on the samples free to move, on the subspace
    that keeps sum(alpha). Chapelle & Rakotomamonjy (2008).

    Parameters
    ----------
    problem : Problem
    gram : Gram
    state : State
    K : ndarray of shape (n, n) or None
        K_d at the weights of `state`; if None, the part that is needed is computed.
    directions : ndarray of shape (k, M), optional
        Directions in which to differentiate; the unit vectors by default.
    """
    if not problem.loss.separable:
        K = gram.combine(state.weights) if K is None else K
        return Response(_joint_hessian(problem, gram, state, K, directions))
    if problem.loss.coupled:
        K = gram.combine(state.weights) if K is None else K
        return Response(_face_hessian(problem, gram, state, np.asarray(K), directions))
    curvature = problem.loss.dual_curvature(problem.y, state.alpha / problem.C) / problem.C
    free = [np.flatnonzero(np.isfinite(column)) for column in curvature.T]
    slopes = _slopes(gram, state, free, directions)
    total: FloatArray | float = 0.0
    moves: dict[int, FloatArray] = {}
    kinds, which = distinct(list(curvature.T))
    for place, kind in enumerate(kinds):  # outputs that share P, as all outputs of the squared loss do
        outputs = np.flatnonzero(np.equal(which, place)).tolist()
        rows, G = free[outputs[0]], [slopes[k] for k in outputs]
        ridges, part = kind[rows], K
        if K is None:
            part, rows = gram.square(rows, state.weights), np.arange(len(rows))
        if isinstance(part, RowsOfSum):
            part = part[np.ix_(rows, rows)]
        if isinstance(part, np.ndarray):
            K_free = take_square(part, rows) if part is K else part
            size = float((gram.diag(state.weights) if K is None else K.diagonal()).mean())
            rough = state.residual > ROUGH and len(rows) >= MANY_FREE
            precision = np.float32 if rough else np.float64
            form, changes = projected_inverse(K_free, ridges, G, problem.fit_intercept, size, precision)
            total += form
            moves.update(zip(outputs, changes, strict=True))
        else:  # on another device
            for own in G:
                total += part.inverse_form(rows, ridges, own, problem.fit_intercept)
    known = len(moves) == len(free)
    return Response(np.asarray(total), [(free[k], moves[k]) for k in range(len(free))] if known else None)


def _slopes(
    gram: Gram, state: State, rows: Sequence[IntArray], directions: FloatArray | None
) -> list[FloatArray]:
    """For every output, the entries at its `rows` of sum_m t_m K_m alpha, all directions t: (n_rows, k)."""
    alpha, known = state.alpha, state.products
    live = None if directions is None else np.flatnonzero(directions.any(axis=0))
    if known is not None and alpha[rows[0], 0].all():
        found = [known[:, rows[0]] if live is None else known[np.ix_(live, rows[0])]]
    else:
        found = gram.products_each(alpha, live, rows)
    return [(part if directions is None else directions[:, live] @ part).T for part in found]


def _joint_hessian(
    problem: Problem, gram: Gram, state: State, K: Any, directions: FloatArray | None
) -> FloatArray:
    """The same for a loss that couples samples: V'' is a matrix, and all samples are free."""
    f, every = state.fitted + state.certificate.intercept, np.arange(len(state.fitted))
    total: FloatArray | float = 0.0
    for k, G in enumerate(_slopes(gram, state, [every] * problem.shape[1], directions)):
        total = total + System(K, problem.column(k), f[:, k : k + 1]).inverse_form(G, EXACT)
    return np.asarray(total)


def _face_hessian(
    problem: Problem, gram: Gram, state: State, K: FloatArray, directions: FloatArray | None
) -> FloatArray:
    """The same for a loss that couples outputs: samples are free to move between the classes they share."""
    face = Face.of(problem, state.alpha)
    if len(face.rows) == 0:
        size = gram.n_kernels if directions is None else len(directions)
        return np.zeros((size, size))
    parts = _slopes(gram, state, [face.rows] * problem.shape[1], directions)
    G = sum(face.B[:, k, None] * part for k, part in enumerate(parts))
    H = face.hessian(K[np.ix_(face.rows, face.rows)], float(K.diagonal().mean()))
    return face.inverse_form(H, np.asarray(G))


def _solved(K: FloatArray, added: FloatArray, right: FloatArray, precision: type) -> FloatArray:
    """(K + diag(added))^-1 right, by Cholesky; in single precision only as far as that has enough digits.

    The diagonal is scaled to one on both sides, as its entries may be many orders of magnitude apart.
    """
    roots = np.sqrt(np.maximum(K.diagonal() + added, 0.0))
    roots[roots == 0.0] = 1.0
    A: FloatArray = np.empty(K.shape, precision)
    for rows in gen_batches(len(K), CACHED_ROWS):
        A[rows] = K[rows] / roots[rows, None] / roots
    A.flat[:: len(A) + 1] = (K.diagonal() + added) / roots**2
    sides = right / roots[:, None]
    sizes = np.abs(sides).max(axis=0)
    sizes[sizes == 0.0] = 1.0
    factor = positive_factor(A, own=True)
    found = cho_solve(factor, (sides / sizes).astype(precision), check_finite=False)
    solved: FloatArray = found.astype(np.float64) * sizes / roots[:, None]
    if precision is np.float32:
        left = right - K @ solved - added[:, None] * solved
        if (np.abs((solved * left).sum(axis=0)) > DIGITS * np.abs((solved * right).sum(axis=0))).any():
            return _solved(K, added, right, np.float64)
    return solved


def projected_inverse(
    K: FloatArray,
    curvature: FloatArray,
    G: list[FloatArray],
    tied: bool,
    size: float = 0.0,
    precision: type = np.float64,
) -> tuple[FloatArray, list[FloatArray]]:
    """sum_j G_j' P G_j and every P G_j, P the inverse of K + diag(curvature), on {x : sum(x) = 0} if `tied`.

    A share of the diagonal of K, or of `size` if that is larger, is added to the diagonal, because K may be
    zero on the free samples.
    """
    ridge, count = 1e-10 * max(float(K.diagonal().mean()) if len(K) else 0.0, size), G[0].shape[1]
    if len(K) <= int(tied) or not (ridge > 0.0 or curvature.any()):
        return np.zeros((count, count)), [np.zeros_like(own) for own in G]
    every = np.hstack([*G, np.ones((len(K), 1))])
    solved = _solved(K, curvature + ridge, every, precision)
    found = solved[:, :-1]
    if tied:
        ones = solved[:, -1]
        found = found - np.outer(ones, found.sum(axis=0) / ones.sum())
    form = every[:, :-1].reshape(-1, count).T @ found.reshape(-1, count)
    return 0.5 * (form + form.T), np.split(found, len(G), axis=1)
