"""A step of the accelerated projected gradient method on a box in one launch, compiled by Triton for the GPU.

One program goes through all samples: vectors of some ten thousand entries stay in the cache of a
multiprocessor, and a launch for every small operation would take longer than all the operations.
"""

# Triton reads the types of its functions itself
# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from typing import Any

from ..._backend import torch
from ...gram.torch._triton_loops import jit

try:
    import triton.language as tl
except ImportError:  # the plain versions are used
    tl = None

#: samples at a time, warps that share them, and most passes to find the multiplier
BLOCK, WARPS, PASSES = 1024, 16, 100


@jit
def _inside(w, lower, upper, shrink):
    """clip(shrink(w)), and whether it moves with w."""
    size = tl.maximum(tl.abs(w) - shrink, 0.0)
    x = tl.where(w < 0.0, -size, size)
    free = (x > lower) & (x < upper) & (tl.abs(w) > shrink)
    return tl.minimum(tl.maximum(x, lower), upper), free


@jit
def _advance(
    a,
    Ka,
    before,
    Kbefore,
    linear,
    lower,
    upper,
    given,
    old,
    v,
    new,
    out,
    n,
    STEPS: tl.constexpr,
    TIED: tl.constexpr,
    PASSES: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The next point, and in `out` the next t and mu, from `old` ones; or the projection of v."""
    o = tl.arange(0, BLOCK)
    step, total = tl.load(given), tl.load(given + 2)
    shrink = step * tl.load(given + 1)
    t, mu = tl.load(old), tl.load(old + 1)
    longer = 0.5 * (1.0 + tl.sqrt(1.0 + 4.0 * t * t))
    push = (t - 1.0) / longer
    least = tl.full((BLOCK,), float("inf"), tl.float64)
    most = -least
    for start in range(0, n, BLOCK):
        i = start + o
        there = i < n
        if STEPS:
            x = tl.load(a + i, mask=there, other=0.0)
            g = tl.load(Ka + i, mask=there, other=0.0)
            y = x + push * (x - tl.load(before + i, mask=there, other=0.0))
            g += push * (g - tl.load(Kbefore + i, mask=there, other=0.0))
            w = y - step * (g - tl.load(linear + i, mask=there, other=0.0))
            tl.store(v + i, w, mask=there)
        else:
            w = tl.load(v + i, mask=there, other=0.0)
        low, high = tl.load(lower + i, mask=there, other=0.0), tl.load(upper + i, mask=there, other=0.0)
        least = tl.minimum(least, tl.where(there, w - high, float("inf")))
        most = tl.maximum(most, tl.where(there, w - low, -float("inf")))
    tl.debug_barrier()
    if TIED:
        first, last = tl.min(least, axis=0) - shrink, tl.max(most, axis=0) + shrink
        mu = tl.minimum(tl.maximum(mu, first), last)
        count = 0
        while count < PASSES:
            sums = tl.zeros((BLOCK,), tl.float64)
            sizes = tl.zeros((BLOCK,), tl.float64)
            moving = tl.zeros((BLOCK,), tl.float64)
            for start in range(0, n, BLOCK):
                i = start + o
                there = i < n
                w = tl.load(v + i, mask=there, other=0.0)
                low = tl.load(lower + i, mask=there, other=0.0)
                high = tl.load(upper + i, mask=there, other=0.0)
                x, free = _inside(w - mu, low, high, shrink)
                sums += tl.where(there, x, 0.0)
                sizes += tl.where(there, tl.abs(x), 0.0)
                moving += tl.where(there & free, 1.0, 0.0)
            # the sum falls with mu, at a rate of one for every free sample
            missing, slope = tl.sum(sums, axis=0) - total, tl.sum(moving, axis=0)
            first = tl.where(missing > 0.0, mu, first)
            last = tl.where(missing > 0.0, last, mu)
            guess = mu + missing / tl.maximum(slope, 1.0)
            middle = 0.5 * (first + last)
            newton = (slope > 0.0) & (guess >= first) & (guess <= last)
            following = tl.where(newton, guess, middle)
            exact = tl.abs(missing) <= 1e-15 * tl.sum(sizes, axis=0)
            done = exact | (following == mu)
            mu = tl.where(exact, mu, following)
            count = tl.where(done, PASSES, count + 1)
    else:
        mu = mu * 0.0
    turned = tl.zeros((BLOCK,), tl.float64)
    for start in range(0, n, BLOCK):
        i = start + o
        there = i < n
        w = tl.load(v + i, mask=there, other=0.0)
        low = tl.load(lower + i, mask=there, other=0.0)
        high = tl.load(upper + i, mask=there, other=0.0)
        z, free = _inside(w - mu, low, high, shrink)
        tl.store(new + i, z, mask=there)
        if STEPS:
            x = tl.load(a + i, mask=there, other=0.0)
            y = x + push * (x - tl.load(before + i, mask=there, other=0.0))
            turned += tl.where(there, (y - z) * (z - x), 0.0)
    tl.store(out, tl.where(tl.sum(turned, axis=0) > 0.0, 1.0, longer))
    tl.store(out + 1, mu)


def advance(
    a: Any,
    Ka: Any,
    before: Any,
    Kbefore: Any,
    linear: Any,
    lower: Any,
    upper: Any,
    given: Any,
    old: Any,
    tied: bool,
) -> tuple[Any, Any]:
    """The point after a step from a, extrapolated along its last move, and the next (t, mu).

    Parameters
    ----------
    a, Ka, before, Kbefore, linear, lower, upper : tensor of shape (n,)
        In double precision, like everything here.
    given : tensor of shape (3,)
        Step length, kink, and the wanted sum.
    old : tensor of shape (2,)
        t of Nesterov's sequence, and a multiplier to begin with.
    tied : bool
        Whether the sum is fixed.
    """
    v, new, out = torch.empty_like(a), torch.empty_like(a), torch.empty_like(old)
    vectors = (a, Ka, before, Kbefore, linear, lower, upper, given, old, v, new, out)
    _advance[(1,)](*vectors, len(a), True, tied, PASSES, BLOCK, num_warps=WARPS)
    return new, out


def project(v: Any, lower: Any, upper: Any, given: Any, old: Any, tied: bool) -> Any:
    """The projection of v onto the box; see `advance`."""
    new, out = torch.empty_like(v), torch.empty_like(old)
    vectors = (v, v, v, v, v, lower, upper, given, old, v, new, out)
    _advance[(1,)](*vectors, len(v), False, tied, PASSES, BLOCK, num_warps=WARPS)
    return new
