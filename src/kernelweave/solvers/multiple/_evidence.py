"""Evidence of the kernel weights: Gaussian noise exactly, a logistic likelihood by Laplace's method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from copy import copy
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from scipy.linalg import cho_solve, lapack
from scipy.special import expit

from ..._typing import FloatArray, IntArray
from ...gram import Gram, Spread
from ...losses import Logistic
from ..problem import Problem

#: noise and prior variances are kept within these multiples of the scale of the targets
LEAST_NOISE, MOST_VARIANCE = 1e-8, 1e3

#: relative rounding of targets and of their mean
ROUNDING = 8.0 * float(np.finfo(np.float64).eps)

#: last Newton step of the mode, relative to f (the evidence is not stationary in f, so f has to be exact to
#: rounding, and its error is the square of the step); and a step that is itself rounding
MODE_TOL, MODE_ROUNDING, MODE_STEPS = 1e-8, 1e-12, 100


@dataclass(frozen=True)
class Posterior:
    """The Gaussian process posterior at given hyper-parameters, exact or Laplace's.

    With S = root, B = L L' and R = S B^-1 S (Gaussian noise: S = I and B = Kbar, so R = Kbar^-1;
    Laplace: S^2 = -d2 log p(y | f) and B = I + S K S, so R = (K + S^-2)^-1),

        mean      k(x)' alpha + b
        variance  k(x, x) - k(x)' R k(x)  [+ (1 - 1' R k(x))^2 / 1' R 1  for an intercept]

    Attributes
    ----------
    weights : ndarray of shape (M,)
    noise : float
        sigma^2; for Laplace 1.0, without meaning.
    objective : float
        Negative log evidence, without the constants that `Evidence.log_evidence` adds.
    alpha : ndarray of shape (n, c)
    intercept : ndarray of shape (c,)
    L : ndarray of shape (n, n)
        Lower triangular.
    root : ndarray of shape (n,)
    ones : ndarray of shape (n,) or None
        R 1; None without an intercept.
    K : ndarray of shape (n, n) or None
        sum_m d_m K_m, where the slopes need it.
    """

    weights: FloatArray
    noise: float
    objective: float
    alpha: FloatArray
    intercept: FloatArray
    L: FloatArray = field(repr=False)
    root: FloatArray = field(repr=False)
    ones: FloatArray | None = field(repr=False)
    K: FloatArray | None = field(repr=False, default=None)

    def precision(self) -> tuple[FloatArray, FloatArray]:
        """P = R, or R - R 1 1' R / 1' R 1 when a flat intercept is integrated out; and diag(B^-1)."""
        inverse = lapack.dpotri(self.L, lower=True)[0]  # zero above the diagonal, as L
        P, diagonal = inverse + inverse.T, inverse.diagonal().copy()
        P.flat[:: len(P) + 1] = diagonal
        P *= np.multiply.outer(self.root, self.root)
        if self.ones is not None:
            P -= np.multiply.outer(self.ones, self.ones / self.ones.sum())
        return P, diagonal

    @property
    def spread(self) -> Spread:
        """What the variances need."""
        return Spread(self.L, self.root, self.ones, float(self.noise))


class Evidence(ABC):
    """-log p(y | d, sigma^2) and its slopes, on the kernels still alive.

    Parameters
    ----------
    gram : Gram
    sample_weight : ndarray of shape (n,)
        A sample of weight w counts as w equal samples.
    fit_intercept : bool
        Whether an intercept with a flat prior is integrated out.
    """

    #: whether sigma^2 is among the hyper-parameters to learn
    learns_noise = False
    #: signal-to-noise ratios to begin with; the ratio 1 comes first
    levels: tuple[float, ...] = (1.0,)
    least_noise, most_variance = 0.0, np.inf

    def __init__(self, gram: Gram, sample_weight: FloatArray, fit_intercept: bool) -> None:
        self.gram: Gram | None = gram
        self.sample_weight, self.fit_intercept = sample_weight, fit_intercept
        self.n_kernels, self.n_outputs = gram.n_kernels, 1
        self.size = float(sample_weight.sum())
        share = sample_weight / self.size
        #: tr K_m / n, of the centred matrix when an intercept takes the mean
        self.scales = gram.inner(np.diag(share))
        if fit_intercept:
            centred = self.scales - gram.quad(share)
            self.scales = np.where(centred > 1e-12 * self.scales, centred, 0.0)

    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest value of every hyper-parameter."""
        lower = np.zeros(self.n_kernels)
        upper = np.divide(self.most_variance, self.scales, out=lower + np.inf, where=self.scales > 0)
        if not self.learns_noise:
            return lower, upper
        return np.append(lower, self.least_noise), np.append(upper, np.inf)

    def subset(self, kernels: IntArray) -> Self:
        """The evidence with only some of the kernels."""
        part = copy(self)
        part.n_kernels, part.scales = len(kernels), self.scales[kernels]
        part.gram = self.gram.subset(kernels=kernels) if self.gram is not None and len(kernels) else None
        return part

    def combine(self, weights: FloatArray) -> FloatArray:
        """sum_m d_m K_m; zero when no kernel is left."""
        n = len(self.sample_weight)
        return np.zeros((n, n)) if self.gram is None else self.gram.combine(weights)

    @abstractmethod
    def start(self, level: float = 1.0) -> tuple[FloatArray, float]:
        """Weights and noise to begin with, at the signal-to-noise ratio `level`; see `levels`."""

    def _shared(self, variance: float) -> FloatArray:
        """Weights that share a prior variance equally among the kernels; 0 for kernels without variance."""
        live = self.scales > 0
        result: FloatArray = np.divide(
            variance / max(live.sum(), 1), self.scales, out=np.zeros(self.n_kernels), where=live
        )
        return result

    @abstractmethod
    def evaluate(self, weights: FloatArray, noise: float, start: Posterior | None = None) -> Posterior | None:
        """The posterior and its evidence; None where the matrix cannot be factored.

        Parameters
        ----------
        weights : ndarray of shape (M,)
        noise : float
        start : Posterior, optional
            The posterior at similar weights.
        """

    @abstractmethod
    def slopes(self, posterior: Posterior) -> tuple[FloatArray, FloatArray]:
        """Non-negative (up, down) with  d objective / d parameter = (down - up) / 2.

        One entry per kernel and, where it is learned, one for the noise.
        """

    def _kernel_slopes(self, alpha: FloatArray, P: FloatArray) -> tuple[FloatArray, FloatArray]:
        """alpha' K_m alpha and c tr(P K_m), Tomioka & Suzuki (2011), section 3."""
        if self.gram is None:
            return np.zeros(0), np.zeros(0)
        down = self.n_outputs * self.gram.inner(P)
        return np.maximum(self.gram.quad(alpha), 0.0), np.maximum(down, 0.0)

    @abstractmethod
    def log_evidence(self, objective: float) -> float:
        """The log marginal likelihood behind an objective value."""


class GaussianEvidence(Evidence):
    """Evidence under Gaussian noise of variance sigma^2 / w_i.

    With Kbar = sigma^2 diag(1/w) + sum_m d_m K_m,

        objective = 1/2 y' P y + 1/2 log|Kbar| [+ 1/2 log 1' Kbar^-1 1] + 1/2 (sum_i w_i - n) log sigma^2

    summed over the outputs, which share d and sigma^2; alpha = P y, and P = Kbar^-1 without the
    intercept. Integrating a flat intercept out is restricted maximum likelihood: the evidence
    of the contrasts of y. The last term makes a sample of weight w count as w equal samples.

    Parameters
    ----------
    gram : Gram
    Y : ndarray of shape (n, c)
    sample_weight : ndarray of shape (n,)
    fit_intercept : bool, default=True
    noise : float, optional
        A known sigma^2; learned by default.

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.gram import DenseGram
    >>> evidence = GaussianEvidence(DenseGram([np.eye(2)]), np.ones((2, 1)), np.ones(2), fit_intercept=False)
    >>> posterior = evidence.evaluate(np.array([1.0]), noise=1.0)
    >>> posterior.alpha.ravel()
    array([0.5, 0.5])
    """

    levels = (1.0, 20.0, 500.0, 1e5)

    def __init__(
        self,
        gram: Gram,
        Y: FloatArray,
        sample_weight: FloatArray,
        fit_intercept: bool = True,
        noise: float | None = None,
    ) -> None:
        super().__init__(gram, sample_weight, fit_intercept)
        self.n_outputs = Y.shape[1]
        self.centre = np.average(Y, axis=0, weights=sample_weight) * fit_intercept
        self.Y = Y - self.centre
        self.variance = float((sample_weight @ self.Y**2).mean()) / self.size
        # targets without variance still need some noise for the factor: the size of their rounding
        self.variance = max(self.variance, ROUNDING**2 * float(np.max(self.centre**2)), 1e-200)
        self.noise, self.learns_noise = noise, noise is None
        self.least_noise = LEAST_NOISE * self.variance

    def start(self, level: float = 1.0) -> tuple[FloatArray, float]:
        """The variance of the targets, shared between kernels and noise as level : 1.

        A known noise takes no part, and the kernels begin with level / 2 times that variance.
        """
        if self.noise is not None:
            return self._shared(0.5 * level * self.variance), self.noise
        noise = self.variance / (1.0 + level)
        return self._shared(self.variance - noise), noise

    def evaluate(self, weights: FloatArray, noise: float, start: Posterior | None = None) -> Posterior | None:
        n, c = self.Y.shape
        A = self.combine(weights)
        A.flat[:: n + 1] += noise / self.sample_weight
        L, failed = lapack.dpotrf(A, lower=True, clean=True)
        if failed:
            return None
        alpha = cho_solve((L, True), np.column_stack([self.Y, np.ones(n)]), check_finite=False)
        alpha, ones = alpha[:, :c], alpha[:, c]
        log_det = 2.0 * float(np.log(L.diagonal()).sum()) + (self.size - n) * np.log(noise)
        b = np.zeros(c)
        if self.fit_intercept:
            b = alpha.sum(axis=0) / ones.sum()
            alpha = alpha - np.multiply.outer(ones, b)
            log_det += np.log(ones.sum())
        objective = 0.5 * float(np.einsum("ic,ic->", self.Y, alpha)) + 0.5 * c * log_det
        return Posterior(
            weights=weights,
            noise=noise,
            objective=objective,
            alpha=alpha,
            intercept=self.centre + b,
            L=L,
            root=np.ones(n),
            ones=ones if self.fit_intercept else None,
        )

    def slopes(self, posterior: Posterior) -> tuple[FloatArray, FloatArray]:
        P, _ = posterior.precision()
        up, down = self._kernel_slopes(posterior.alpha, P)
        if not self.learns_noise:
            return up, down
        noise_up = float((posterior.alpha.T**2 / self.sample_weight).sum())
        noise_down = self.n_outputs * float((P.diagonal() / self.sample_weight).sum())
        copies = self.n_outputs * (self.size - len(P)) / posterior.noise
        noise_up, noise_down = noise_up + max(-copies, 0.0), noise_down + max(copies, 0.0)
        return np.append(up, noise_up), np.append(down, max(noise_down, 0.0))

    def log_evidence(self, objective: float) -> float:
        constant = (self.size - self.fit_intercept) * np.log(2.0 * np.pi) + np.log(self.sample_weight).sum()
        return float(-objective - 0.5 * self.n_outputs * constant)


class LaplaceEvidence(Evidence):
    """Evidence of a logistic likelihood, approximated by a Gaussian at the mode of the posterior.

    With f = K alpha + b the mode, V the logistic loss, W = w V" and S = sqrt(W),

        objective = sum_i w_i V(y_i, f_i) + 1/2 alpha' K alpha + 1/2 log|I + S K S| [+ 1/2 log 1' R 1]

    where R = (K + 1/W)^-1 (Rasmussen & Williams 2006, section 3.4; the bracket integrates a flat
    intercept out). Through W the evidence also depends on the mode, which moves with d:

        up_m - down_m = alpha' K_m alpha - tr(P K_m) + 2 z' K_m alpha
        z = -1/2 (I - W Sigma) (diag(Sigma) o dW/df),   Sigma the posterior covariance of f

    Parameters
    ----------
    gram : Gram
    y : ndarray of shape (n,)
        -1 or +1.
    sample_weight : ndarray of shape (n,)
    fit_intercept : bool, default=True

    Examples
    --------
    >>> import numpy as np
    >>> from kernelweave.gram import DenseGram
    >>> y = np.array([1.0, -1.0])
    >>> evidence = LaplaceEvidence(DenseGram([np.eye(2)]), y, np.ones(2), fit_intercept=False)
    >>> posterior = evidence.evaluate(np.array([1.0]), noise=1.0)
    >>> posterior.alpha.ravel()
    array([ 0.4, -0.4])
    """

    most_variance = MOST_VARIANCE
    levels = (1.0, 10.0, 100.0, 1000.0)

    def __init__(
        self, gram: Gram, y: FloatArray, sample_weight: FloatArray, fit_intercept: bool = True
    ) -> None:
        super().__init__(gram, sample_weight, fit_intercept)
        self.problem = Problem(y[:, None], Logistic(), sample_weight[:, None], fit_intercept)

    def start(self, level: float = 1.0) -> tuple[FloatArray, float]:
        """A prior variance of `level`, shared equally by the kernels; the noise is in the likelihood."""
        return self._shared(level), 1.0

    def evaluate(self, weights: FloatArray, noise: float, start: Posterior | None = None) -> Posterior | None:
        K = self.combine(weights)
        mode = self._mode(K, start)
        if mode is None:
            return None
        alpha, b, f, root, L = mode
        ones = root * cho_solve((L, True), root, check_finite=False)
        if self.fit_intercept and not ones.sum() > 0:
            return None  # every probability is 0 or 1 to rounding
        objective = self._energy(alpha, f, b) + float(np.log(L.diagonal()).sum())
        return Posterior(
            weights=weights,
            noise=noise,
            objective=objective + (0.5 * np.log(ones.sum()) if self.fit_intercept else 0.0),
            alpha=alpha,
            intercept=b,
            L=L,
            root=root,
            ones=ones if self.fit_intercept else None,
            K=K,
        )

    def slopes(self, posterior: Posterior) -> tuple[FloatArray, FloatArray]:
        P, diagonal = posterior.precision()
        up, down = self._kernel_slopes(posterior.alpha, P)
        if self.gram is None:
            return up, down
        z, alpha = self._mode_weights(posterior, diagonal)[:, None], posterior.alpha
        moved = 0.5 * (self.gram.quad(alpha + z) - self.gram.quad(alpha - z))  # 2 z' K_m alpha
        return up + np.maximum(moved, 0.0), down + np.maximum(-moved, 0.0)

    def _mode(self, K: FloatArray, start: Posterior | None) -> tuple[FloatArray, ...] | None:
        """alpha, intercept b and K alpha of the most probable f, to rounding, and S and L there.

        Newton's method, from zero or from the mode at similar weights. It starts from the values f of that
        mode, not from those of its alpha at the new weights, so the first step goes along the tangent of the
        modes. None where B has no factor.
        """
        alpha: FloatArray = np.zeros_like(self.problem.y)
        b: FloatArray = np.zeros(1)
        f, value = alpha, self._energy(alpha, alpha, b)
        if start is not None and start.K is not None:
            at, shift = start.alpha, start.intercept
            first = self._step(K, at, K @ at + shift, start.K @ at + shift)
            if first is not None:
                at, shift = at + first[0], shift + first[1]
            f_at = K @ at
            energy = self._energy(at, f_at, shift)
            if energy < value:
                alpha, b, f, value = at, shift, f_at, energy
        for _ in range(MODE_STEPS):
            found = self._step(K, alpha, f + b, f + b)
            if found is None:
                return None
            step, db, root, L = found
            df, t = K @ step, 1.0
            energy = self._energy(alpha + step, f + df, b + db)
            while energy > value and t > 1e-10:
                t *= 0.5
                energy = self._energy(alpha + t * step, f + t * df, b + t * db)
            alpha, b, f, value = alpha + t * step, b + t * db, f + t * df, energy * (1.0 + 1e-14)
            moved = float(np.abs(t * (df + db)).max()) / (1.0 + float(np.abs(f).max()))
            if moved <= MODE_TOL:
                break
        if moved <= MODE_ROUNDING:
            return alpha, b, f, root, L
        root = np.sqrt(self._curvature(f + b))
        factor = _scaled_factor(K, root)
        return None if factor is None else (alpha, b, f, root, factor)

    def _step(
        self, K: FloatArray, alpha: FloatArray, fitted: FloatArray, f: FloatArray
    ) -> tuple[FloatArray, ...] | None:
        """Newton step (dalpha, db) to alpha = -w V'(f), f = K alpha + b, and S and L at `f`.

        The first equation is taken as linear at `f`, from `fitted` = K alpha + b:

            (I + W K) dalpha + W db = v,    v = -w V'(f) - alpha + W (f - fitted)

        and (I + W K)^-1 v = v - S (I + S K S)^-1 S K v.
        """
        W = self._curvature(f)
        root = np.sqrt(W)
        L = _scaled_factor(K, root)
        if L is None:
            return None
        v = (self.problem.alpha_of(f) - alpha)[:, 0] + W * (f - fitted)[:, 0]
        solved, ones = root * lapack.dpotrs(L, np.array([root * (K @ v), root]).T, lower=True)[0].T
        step, db = v - solved, 0.0
        if self.fit_intercept and ones.sum() > 0:
            db = (step.sum() + alpha.sum()) / ones.sum()
        return (step - db * ones)[:, None], np.array([db]), root, L

    def _curvature(self, f: FloatArray) -> FloatArray:
        """W, the diagonal of -d2 log p(y | f)."""
        return np.asarray((self.problem.C * self.problem.loss.hessian(self.problem.y, f))[:, 0])

    def _energy(self, alpha: FloatArray, f: FloatArray, b: FloatArray) -> float:
        """sum_i w_i V(y_i, f_i + b) + 1/2 alpha' K alpha, with f = K alpha."""
        return self.problem.primal_loss(f, b) + 0.5 * float(np.einsum("ic,ic->", alpha, f))

    def _mode_weights(self, posterior: Posterior, diagonal: FloatArray) -> FloatArray:
        """The vector z of the class docstring; W diag(Sigma) = 1 - diag(B^-1) plus the intercept's share."""
        K, root = posterior.K, posterior.root
        assert K is not None
        p = expit((K @ posterior.alpha + posterior.intercept)[:, 0])
        spread, u, size = np.maximum(1.0 - diagonal, 0.0), np.zeros_like(root), 1.0
        if posterior.ones is not None:
            u, size = 1.0 - K @ posterior.ones, float(posterior.ones.sum())
            spread += root**2 * u**2 / size
        v = -0.5 * spread * (1.0 - 2.0 * p)
        Kv = K @ v
        moved = Kv - K @ (root * cho_solve((posterior.L, True), root * Kv, check_finite=False))
        return np.asarray(v - root**2 * (moved + u * (float(u @ v) / size)))

    def log_evidence(self, objective: float) -> float:
        return float(-objective + 0.5 * np.log(2.0 * np.pi) * self.fit_intercept)


def _scaled_factor(K: FloatArray, root: FloatArray) -> FloatArray | None:
    """Lower Cholesky factor of B = I + S K S; None where it has none."""
    B = np.multiply.outer(root, root)
    B *= K
    B.flat[:: len(B) + 1] += 1.0
    L, failed = lapack.dpotrf(B.T, lower=True, clean=True, overwrite_a=True)
    return None if failed else L
