"""Laws of scale, slopes as quotients of differences, bounds that are reached, and values at the edges."""

from __future__ import annotations

import numpy as np
import pytest

from kernelweave.gram import DenseGram
from kernelweave.regularizers import (
    REGULARIZERS,
    SMKL,
    BlockNorm,
    ElasticNet,
    GroupLassoTerm,
    LogTerm,
    LpNorm,
    Mahalanobis,
    MFocussTerm,
    MKLTerm,
    PatternNorm,
    Uniform,
    Wedge,
)

M = 4
ETA = np.array([0.5, 1.0, 2.0, 0.1])
E = np.array([[1.0, 0.3, 0.1, 0.0], [0.3, 1.5, 0.2, 0.1], [0.1, 0.2, 0.8, 0.0], [0.0, 0.1, 0.0, 2.0]])
PATTERNS = np.array([[1, 1, 0, 0], [0, 1, 1, 1], [1, 0, 0, 1]], dtype=bool)

CONSTRAINTS = [
    LpNorm(p=1),
    LpNorm(p=4 / 3, costs=ETA),
    LpNorm(p=np.inf),
    BlockNorm(q=1.5),
    BlockNorm(q=4.0),
    ElasticNet(0.0, "constraint"),
    ElasticNet(0.4, "constraint"),
    ElasticNet(1.0, "constraint"),
    Wedge("constraint"),
    Mahalanobis(E),
]


@pytest.fixture
def draws(rng):
    return rng.gamma(1.0, size=(6, M)) + 0.01


@pytest.mark.parametrize("t", [1e-9, 1e-3, 1e3])
@pytest.mark.parametrize("rule", CONSTRAINTS, ids=repr)
def test_norms_in_another_unit(rule, t, draws):
    """Omega and Omega* of a constraint are squares; weights know no unit, and use the constraint up."""
    for x in draws:
        assert rule.penalty(t * x) == pytest.approx(t**2 * rule.penalty(x), rel=1e-7)
        assert rule.conjugate(t * x) == pytest.approx(t**2 * rule.conjugate(x), rel=1e-7)
        weights = rule.weights_from_dual if getattr(rule, "ascends", False) else rule.weights
        np.testing.assert_allclose(weights(t * x), weights(x), rtol=1e-6)
        inside, outside = (1.0 - 1e-9, 1.001) if not getattr(rule, "ascends", False) else (1.0 + 1e-9, 0.999)
        assert rule.price(weights(x) * inside) == 0.0
        assert abs(rule.price(weights(x) * outside)) == np.inf


@pytest.mark.parametrize("rule", CONSTRAINTS, ids=repr)
def test_kernels_without_norm_have_feasible_weights(rule):
    zero = np.zeros(M)
    ascends = getattr(rule, "ascends", False)
    weights = rule.weights_from_dual(zero) if ascends else rule.weights(zero)
    assert np.isfinite(weights).all()
    assert rule.price(weights * (1.0 + 1e-9 if ascends else 1.0 - 1e-9)) == 0.0
    assert rule.penalty(zero) == rule.conjugate(zero) == 0.0


@pytest.mark.parametrize(
    "rule",
    [LpNorm(p=1.5, form="penalty"), LpNorm(p=3, form="penalty"), ElasticNet(0.3), ElasticNet(1.0)],
    ids=repr,
)
def test_slopes_of_the_price_are_quotients_of_differences(rule, draws):
    for x in draws:
        d, step = x / (2.0 * x.max()), 1e-5
        first, second = rule.price_slopes(d)
        for m, unit in enumerate(np.eye(M)):
            up, at, down = (rule.price(d + k * step * unit) for k in (1, 0, -1))
            assert first[m] == pytest.approx((up - down) / (2 * step), rel=1e-4)
            assert second[m] == pytest.approx((up - 2 * at + down) / step**2, rel=1e-2, abs=1e-3)


@pytest.mark.parametrize("a", [0.0, 0.3, 0.9])
@pytest.mark.parametrize("form", ["constraint", "penalty"])
def test_the_largest_weight_of_an_elastic_net_is_where_its_price_ends(form, a):
    rule, unit = ElasticNet(a, form), np.eye(M)[0]
    assert np.isfinite(rule.price(0.999 * rule.max_weight * unit))
    assert rule.price(1.001 * rule.max_weight * unit) == np.inf
    assert rule.price(np.ones(M)) == (0.0 if a == 0.0 else rule.price(np.ones(M)))
    assert ElasticNet(1.0).max_weight == np.inf


TERMS = [
    LogTerm(ETA, eps=0.1),
    LogTerm(2.0),
    GroupLassoTerm(ETA),
    MFocussTerm(p=0.5),
    MKLTerm(ETA),
    SMKL(ETA, eps=0.2),
]


@pytest.mark.parametrize("term", [*TERMS, LogTerm(ETA) + 2.0 * MKLTerm()], ids=repr)
def test_slopes_of_concave_terms_are_quotients_of_differences(term, draws):
    for x in draws:
        step = 1e-6
        slopes = [(term.value(x + step * unit) - term.value(x - step * unit)) / step for unit in np.eye(M)]
        np.testing.assert_allclose(term.slopes(x), slopes, rtol=1e-4)


@pytest.mark.parametrize("term", TERMS, ids=repr)
def test_multiples_keep_one_strength_per_kernel(term, draws):
    scaled = 3.0 * term
    assert np.shape(scaled.eta) == np.shape(term.eta)
    assert isinstance(scaled.eta, float) or len(scaled.eta) == M
    for x in draws:
        assert scaled.value(x) == pytest.approx(3.0 * term.value(x))
        np.testing.assert_allclose(scaled.slopes(x), 3.0 * term.slopes(x))


@pytest.mark.parametrize("factor", [0, -1.0, np.inf, np.nan, "2", 1j, np.ones(2)])
def test_terms_are_scaled_by_positive_numbers(factor):
    with pytest.raises((ValueError, TypeError)):
        LogTerm() * factor


@pytest.mark.parametrize("eps", [0.0, -1.0, np.inf, np.nan])
def test_the_floor_of_a_logarithm_is_positive(eps):
    with pytest.raises(ValueError, match="eps="):
        LogTerm(eps=eps).value(np.ones(2))


@pytest.mark.parametrize("eta", [0.0, np.inf, [1.0, -1.0]])
def test_strengths_are_positive(eta):
    for term in (LogTerm, GroupLassoTerm, MKLTerm, SMKL):
        with pytest.raises(ValueError, match="eta must be positive"):
            term(eta).value(np.ones(2))


def test_which_penalties_grow_like_norms(draws):
    """`homogeneous`: Omega(t n) = t Omega(n)."""
    rules = [cls() for cls in REGULARIZERS.values() if cls.convex and cls is not PatternNorm]
    rules += [LpNorm(p=1, form="penalty"), LpNorm(p=2, form="penalty"), Wedge(), ElasticNet(1.0), LpNorm(p=1)]
    for rule in rules:
        first = all(rule.penalty(3.0 * x) == pytest.approx(3.0 * rule.penalty(x)) for x in draws)
        assert rule.homogeneous == first, rule


@pytest.mark.parametrize("order", [1.0, 1.5, 2.0, 4.0])
@pytest.mark.parametrize("p", [1.0, 4 / 3, 2.0, np.inf])
@pytest.mark.parametrize("costs", [None, ETA])
def test_the_largest_norm_of_weights_is_reached(order, p, costs, draws):
    """max ||a d||_q over ||c d||_p <= 1: x = c d ~ b^(q/(p-q)), b = a / c, or one kernel if q >= p."""
    c = np.ones(M) if costs is None else costs
    for a in draws:
        b, found = a / c, LpNorm(p, costs=costs).largest_norm(a, order)
        x = np.eye(M)[b.argmax()]
        if order < p:
            x = np.ones(M) if np.isinf(p) else b ** (order / (p - order))
        x = x / np.linalg.norm(x, p)
        assert found == pytest.approx(np.linalg.norm(b * x, order), rel=1e-9)
        for y in draws:
            assert np.linalg.norm(b * y / np.linalg.norm(y, p), order) <= found * (1 + 1e-9)


@pytest.mark.parametrize("order", [1.0, 1.5, 2.0, 4.0])
def test_the_largest_norm_of_weights_under_a_matrix(order, draws):
    rule = Mahalanobis(E)
    for a in draws:
        most = rule.largest_norm(a, order)
        for d in draws:
            assert np.linalg.norm(a * d / rule.size(d), order) <= most * (1 + 1e-9)
    a = draws[0]
    vectors = np.linalg.eigh(E * np.outer(a, a))[1]
    d = np.abs(vectors[:, -1]) / a  # E has no negative entry: neither has its leading vector
    assert rule.largest_norm(a, 2.0) == pytest.approx(np.linalg.norm(a * d) / rule.size(d), rel=1e-6)
    equal = Mahalanobis(np.eye(M)).largest_norm(np.ones(M), order)
    assert equal == pytest.approx(M ** max(1.0 / order - 0.5, 0.0))


def test_an_order_of_weights():
    rule = Wedge("constraint")
    assert rule.size(np.array([3.0, 2.0, 1.0])) == 6.0
    for rises in ([3.0, 1.0, 2.0], [1.0, 2.0, 3.0]):
        assert rule.size(np.array(rises)) == np.inf
    weights = rule.weights(np.array([1.0, 3.0, 0.5]))
    assert weights.sum() == pytest.approx(1.0)
    assert (np.diff(weights) <= 0).all()


@pytest.mark.parametrize(
    "rule", [LpNorm(p=1), LpNorm(p=1, costs=ETA), Wedge(), Wedge("constraint")], ids=repr
)
def test_generators_span_the_weights_at_their_price(rule, draws):
    """d = T z: z >= 0 are feasible directions, with the slopes of the price in z."""
    T = np.asarray(rule.generators(M))
    T = np.diag(T) if T.ndim == 1 else T
    for z in draws:
        assert np.isfinite(rule.size(T @ z) if hasattr(rule, "size") else 0.0)
    if not getattr(rule, "penalised", False):
        np.testing.assert_allclose([rule.size(column) for column in T.T], 1.0)


def test_which_matrix_weights_are_bounded_by(rng):
    roots = rng.normal(size=(3, 5, 5))
    gram = DenseGram(roots @ roots.transpose(0, 2, 1))
    bound = Mahalanobis().bound_to(gram)
    flat = [K.ravel() / np.linalg.norm(K) for K in roots @ roots.transpose(0, 2, 1)]
    np.testing.assert_allclose(bound.E, np.array(flat) @ np.array(flat).T + 1e-3 * np.eye(3))
    with pytest.raises(ValueError, match="must be a matrix or 'alignment'"):
        Mahalanobis("alignments").bound_to(gram)
    with pytest.raises(ValueError, match=r"E has shape \(4, 4\) for 3 kernels"):
        Mahalanobis(E).bound_to(gram)
    given = Mahalanobis(np.eye(3))
    assert given.bound_to(gram) is given


# -- norms of patterns -------------------------------------------------------------------------------


def test_the_norm_of_patterns_is_their_largest_sum(draws):
    rule = PatternNorm(PATTERNS)
    for n in draws:
        sums = [sum(n[m] for m in range(M) if row[m]) for row in PATTERNS]
        assert rule.penalty(n) == pytest.approx(0.5 * max(sums) ** 2)


def test_fenchels_inequality_of_patterns_is_reached(draws):
    """Omega*(r) = 1/2 (max r'n over sum_m s_pm n_m <= 1)^2: reached by one of the corners of these n >= 0."""
    from itertools import combinations

    rule = PatternNorm(PATTERNS)
    A, b = np.vstack([PATTERNS, -np.eye(M)]), np.append(np.ones(len(PATTERNS)), np.zeros(M))
    corners = []
    for rows in combinations(range(len(A)), M):
        if abs(np.linalg.det(A[list(rows)])) > 1e-12:
            n = np.linalg.solve(A[list(rows)], b[list(rows)])
            if (A @ n <= b + 1e-12).all():
                corners.append(n)
    for r in draws:
        most = max(float(r @ n) for n in corners)
        assert rule.conjugate(r) == pytest.approx(0.5 * most**2)
        for n in draws:
            assert rule.penalty(n) + rule.conjugate(r) >= r @ n - 1e-9
    assert rule.conjugate(np.zeros(M)) == 0.0


def test_patterns_within_others_do_not_count(draws):
    inner = np.vstack([PATTERNS, [[0, 1, 0, 0]], [[0, 1, 1, 0]]])
    for n in draws:
        assert PatternNorm(inner).penalty(n) == PatternNorm(PATTERNS).penalty(n)
        np.testing.assert_allclose(PatternNorm(inner).weights(n), PatternNorm(PATTERNS).weights(n))
    assert len(PatternNorm(inner).maximal) == len(PATTERNS)


def test_weights_of_patterns_attain_the_penalty_where_all_decide_alike():
    """1/2 sum n^2 / d + 1/2 h = N^2 with h = 1 where sum_m s_pm n_m is the same for every pattern."""
    rule = PatternNorm(np.array([[1, 1, 0], [0, 1, 1]], dtype=bool))
    n = np.array([2.0, 1.0, 2.0])  # both patterns sum to 3
    d = rule.weights(n)
    c = np.array([0.5, 1.0, 0.5])
    np.testing.assert_allclose(d, n / (3.0 * c))
    assert 0.5 * (n**2 / d).sum() == pytest.approx(rule.penalty(n))
    np.testing.assert_allclose(rule.weights(np.zeros(3)), rule.weights(np.ones(3)))


def test_patterns_of_some_kernels():
    part = PatternNorm(PATTERNS).select(np.array([0, 3]), M)
    assert sorted(map(tuple, np.asarray(part.patterns, dtype=int))) == [(0, 1), (1, 0), (1, 1)]
    with pytest.raises(ValueError, match="patterns has 4 columns for 3 kernels"):
        PatternNorm(PATTERNS).select(np.array([0]), 3)


@pytest.mark.parametrize("strength", [0.01, 1.0, 30.0])
def test_the_step_of_a_model_is_optimal(rng, strength):
    """-r'v + 1/2 (v - n)' Q (v - n) + Omega(v) rises in every direction that keeps v >= 0."""
    rule, root = PatternNorm(PATTERNS), rng.normal(size=(M, M))
    Q = root @ root.T + 0.1 * np.eye(M)
    for _ in range(10):
        n, r = rng.gamma(1.0, size=M), strength * rng.gamma(1.0, size=M)

        def value(v, n=n, r=r):
            return -r @ v + 0.5 * (v - n) @ Q @ (v - n) + rule.penalty(v)

        v = rule.model_step(n, r, Q)
        assert (v >= 0).all()
        at = value(v)
        for _ in range(60):
            other = np.maximum(v + 0.1 * rng.normal(size=M), 0.0)
            assert value(v + 1e-3 * (other - v)) >= at - 1e-9 * (1.0 + abs(at))


# -- weights of dual norms, parameters, and what a rule says of itself ---------------------------------


@pytest.mark.parametrize("form", ["constraint", "penalty"])
@pytest.mark.parametrize("costs", [None, ETA])
@pytest.mark.parametrize("p", [4 / 3, 2.0, 5.0])
def test_weights_of_dual_norms_attain_the_conjugate(p, costs, form, draws):
    """Omega*(r) = max_d 1/2 sum_m d_m r_m^2 - 1/2 h(d)."""
    rule = LpNorm(p, form, costs=costs)
    for r in (*draws, 1e-3 * draws[0], 1e3 * draws[1], draws[2] * np.array([1.0, 0.0, 1.0, 0.0])):
        d = rule.weights_from_dual(r)
        price = rule.price(d) if form == "penalty" else 0.0
        assert 0.5 * (d @ r**2 - price) == pytest.approx(rule.conjugate(r), rel=1e-9)
        assert rule.price(d * (1.0 - 1e-9)) < np.inf
    if form == "constraint":
        assert rule.price(rule.weights_from_dual(np.zeros(M)) * (1.0 - 1e-9)) == 0.0


@pytest.mark.parametrize("rule", [LpNorm(p=1.5), LpNorm(p=3, costs=ETA), BlockNorm(q=1.5)], ids=repr)
@pytest.mark.parametrize("form", ["constraint", "penalty"])
def test_slopes_of_the_logarithms_of_weights(rule, form, draws):
    """d log d_m / d log n_l is diag(a) less a matrix of rank one: the differences of log weights."""
    rule = rule.in_form(form) if rule.form != form else rule
    step = 1e-6
    for n in draws:
        numeric = np.array(
            [
                (
                    np.log(rule.weights(n * np.exp(step * unit)))
                    - np.log(rule.weights(n * np.exp(-step * unit)))
                )
                / (2 * step)
                for unit in np.eye(M)
            ]
        ).T
        found = rule.log_slopes(n)
        np.testing.assert_allclose(found, numeric if found.ndim == 2 else numeric.diagonal(), atol=1e-5)


@pytest.mark.parametrize("costs", [[1.0, -1.0], [0.0, 1.0], [1.0, np.nan]])
def test_costs_are_positive(costs):
    with pytest.raises(ValueError, match="costs must be positive"):
        LpNorm(p=2, costs=costs).penalty(np.ones(2))


@pytest.mark.parametrize("ratio", [-0.1, 1.5, np.nan, "x", None])
def test_a_ratio_is_a_share(ratio):
    with pytest.raises(ValueError, match="l1_ratio="):
        ElasticNet(ratio).penalty(np.ones(2))


@pytest.mark.parametrize("order", [0.5, np.nan, "x", None])
def test_orders_are_numbers_of_at_least_one(order):
    with pytest.raises(ValueError, match=r"BlockNorm: q=.* must be at least 1"):
        BlockNorm(order).penalty(np.ones(2))
    with pytest.raises(ValueError, match=r"LpNorm: p=.* must be at least 1"):
        LpNorm(order).penalty(np.ones(2))


def test_what_rules_say_of_themselves():
    assert [ElasticNet(a).sparse for a in (0.0, 0.3, 1.0)] == [False, True, True]
    assert [ElasticNet(a, "constraint").sparse for a in (0.0, 0.3, 1.0)] == [False, True, True]
    assert [ElasticNet(a, "constraint").tied for a in (0.0, 0.3, 1.0)] == [False, True, True]
    assert [ElasticNet(a, "constraint").bent for a in (0.0, 0.3, 1.0)] == [False, True, False]
    assert not any(ElasticNet(a).bent for a in (0.0, 0.3, 1.0))
    assert not any(ElasticNet(a).tied for a in (0.0, 0.3, 1.0))
    assert [BlockNorm(q).sparse for q in (1.0, 1.5, 2.0)] == [True, False, False]
    assert [BlockNorm(q, "penalty").homogeneous for q in (1.0, 1.5, 2.0)] == [True, False, False]
    assert not any(BlockNorm(q, "constraint").homogeneous for q in (1.0, 1.5, 2.0))
    assert (LogTerm() + GroupLassoTerm()).homogeneous == (
        LogTerm().homogeneous and GroupLassoTerm().homogeneous
    )
    assert not (GroupLassoTerm() + MKLTerm()).homogeneous


def test_edges_of_an_elastic_net():
    assert ElasticNet(0.5).price(np.array([2.0, 0.0])) == np.inf  # 1 - (1 - a) d is 0 there
    first, second = ElasticNet(0.5, "constraint").price_slopes(np.full(3, 0.2))
    np.testing.assert_array_equal([first, second], 0.0)
    weights = ElasticNet(0.5, "constraint").weights(np.array([1.0, 0.0, 2.0]))
    assert weights[1] == 0.0 < weights[0] < weights[2]


def test_kernels_that_come_later_may_have_no_weight():
    np.testing.assert_allclose(Wedge("constraint").weights(np.array([1.0, 0.0, 0.0])), [1.0, 0.0, 0.0])


def test_small_multiples_of_terms(draws):
    for x in 1e-6 * draws:
        assert (0.5 * LogTerm()).value(x) == pytest.approx(0.5 * LogTerm().value(x))
        total = float(np.sqrt(x).sum())
        np.testing.assert_allclose(MKLTerm().slopes(x), total / np.sqrt(x))


@pytest.mark.parametrize(
    "matrix",
    [np.eye(3), np.array([[1.0, 0.5], [0.0, 1.0]]), np.ones((2, 2)), np.array([[1.0, 2.0], [2.0, 1.0]])],
)
def test_a_matrix_of_weights_is_positive_definite(matrix):
    with pytest.raises(ValueError, match="positive definite matrix of shape"):
        Mahalanobis(matrix).penalty(np.ones(2))


def test_the_conjugate_under_a_matrix_is_that_of_its_conditions(rng):
    """min_{t >= s} t' E t: E t >= 0 at the minimum, and zero where t is above s."""
    for _ in range(10):
        root = rng.normal(size=(M, M))
        own = root @ root.T + 0.5 * np.eye(M)
        r = rng.gamma(0.5, size=M) + 1e-3
        s, half = r**2, 2.0 * Mahalanobis(own).conjugate(r)
        t = s.copy()
        for _ in range(600):  # coordinate descent, as plain as can be
            for m in range(M):
                t[m] = max(s[m], t[m] - (own[m] @ t) / own[m, m])
        assert half == pytest.approx(float(np.sqrt(t @ own @ t)), rel=1e-7)


def test_extreme_dual_norms():
    for rule in (LpNorm(p=4 / 3), LpNorm(p=3)):
        one = rule.weights_from_dual(np.array([1.0, 2.0, 0.5]))
        for t in (1e-75, 1e75):
            np.testing.assert_allclose(rule.weights_from_dual(t * np.array([1.0, 2.0, 0.5])), one, rtol=1e-9)
    assert np.isfinite(BlockNorm(4.0, "penalty").weights_from_dual(np.zeros(3))).all()
    assert Uniform().size(np.array([0.5, 0.2])) == 0.5


def test_patterns_that_become_alike_are_one(draws):
    assert len(PatternNorm(PATTERNS).select(np.array([2]), M).patterns) == 2
    c = np.mean(PATTERNS, axis=0)
    for n in draws:
        largest = max(float(n @ row) for row in PATTERNS)
        np.testing.assert_allclose(PatternNorm(PATTERNS).weights(n), n / (largest * c))


@pytest.mark.parametrize("t", [1e-20, 1e-9, 1e20])
def test_norms_of_patterns_in_another_unit(t, rng, draws):
    """Omega and Omega* are squares, and the step of a model goes with its norms."""
    rule, root = PatternNorm(PATTERNS), rng.normal(size=(M, M))
    Q = root @ root.T + 0.1 * np.eye(M)
    for n, r in zip(draws, draws[::-1], strict=True):
        assert rule.penalty(t * n) == pytest.approx(t**2 * rule.penalty(n), abs=0.0, rel=1e-9)
        assert rule.conjugate(t * r) == pytest.approx(t**2 * rule.conjugate(r), abs=0.0, rel=1e-6)
        assert rule.dual_scale(t * r) == 1.0  # it is finite everywhere
        np.testing.assert_allclose(
            rule.model_step(t * n, t * r, Q), t * rule.model_step(n, r, Q), rtol=1e-6, atol=1e-9 * t
        )


def test_kernels_without_norm_among_patterns(rng):
    rule = PatternNorm(PATTERNS)
    n, c = np.array([1.0, 0.0, 2.0, 0.5]), np.mean(PATTERNS, axis=0)
    np.testing.assert_allclose(rule.weights(n), n / (max(float(n @ row) for row in PATTERNS) * c))
    np.testing.assert_array_equal(rule.model_step(np.zeros(M), np.zeros(M), np.eye(M)), 0.0)
    root = rng.normal(size=(M, M))
    gone = 0
    for _ in range(40):
        v = rule.model_step(rng.gamma(0.3, size=M), rng.gamma(0.3, size=M), root @ root.T + 0.01 * np.eye(M))
        assert ((v == 0.0) | (v > 1e-9 * v.max())).all()  # no rounding is left where norms are zero
        gone += int((v == 0.0).sum())
    assert gone > 20


@pytest.mark.parametrize("spread", [0.0, 2.0])
def test_weights_under_a_matrix_are_stationary(spread, rng):
    """At the minimum of sum n^2 / d over d' E^-1 d <= 1, n^2 / d^2 is a multiple of E^-1 d."""
    for _ in range(10):
        root = rng.normal(size=(M, M))
        own, n = root @ root.T + 0.05 * np.eye(M), 10.0 ** rng.uniform(-spread, 0.0, size=M)
        d = Mahalanobis(own).weights(n)
        ratio = n**2 / d**2 / np.linalg.solve(own, d)
        np.testing.assert_allclose(ratio, ratio.mean(), rtol=1e-6)
        for c in (1e-30, 1e30):  # E in another unit
            np.testing.assert_allclose(Mahalanobis(c * own).weights(n), c**0.5 * d, rtol=1e-6)


@pytest.mark.parametrize("ratio", [0.3, 0.7, 1.0])
@pytest.mark.parametrize("unit", [1e-200, 1e-30, 1.0, 1e30])
def test_the_multiple_of_weights_within_the_bound_of_an_elastic_net(ratio, unit):
    """It is 1 / unit times that of the same weights in other units, and spends the bound."""
    rule, weights = ElasticNet(ratio, form="constraint"), np.array([0.2, 0.0, 0.9, 0.4])
    c = rule.multiple(unit * weights)
    z = c * (unit * weights)
    assert (ratio * z / (1.0 - (1.0 - ratio) * z)).sum() == pytest.approx(1.0, rel=1e-9)
    assert c * unit == pytest.approx(rule.multiple(weights), rel=1e-9)
