"""exp(x) for x <= 0 that compiles to vector instructions, in single and double precision.

The compiler has no vector form of math.exp without Intel's library; this one is additions,
multiplications and shifts only:

    exp(x) = 2^k exp(r),    k = round(x / log 2),    r = x - k log 2 in [-0.35, 0.35]

exp(r) is a polynomial; the relative error is 1e-15 in double and 1e-7 in single precision. x is
raised to -708 (-87): what underflows comes out as the smallest normal number.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

# adding it rounds a number to an integer, which then stands in the lowest bits
ROUND64, ROUND32 = 1.5 * 2.0**52, np.float32(1.5 * 2.0**23)

# log 2 in two parts, the first short enough for k times it to be exact
HIGH64, LOW64 = 0.6931471803691238, 1.9082149292705877e-10
HIGH32, LOW32 = np.float32(0.693359375), np.float32(-2.12194440e-4)
INVERSE64, INVERSE32 = 1.0 / math.log(2.0), np.float32(1.0 / math.log(2.0))
LEAST64, LEAST32 = -708.0, np.float32(-87.0)
ONE32, HALF32 = np.float32(1.0), np.float32(0.5)

# 1 / k! down to the rounding error
C3, C4, C5, C6, C7, C8, C9, C10, C11, C12 = (1.0 / math.factorial(k) for k in range(3, 13))
S3, S4, S5, S6, S7 = (np.float32(1.0 / math.factorial(k)) for k in range(3, 8))


def _bitcast(returned: Any, given: Any, width: Any) -> Any:
    """An intrinsic that reads the bits of one number as another."""

    def typed(context, x):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            return builder.bitcast(arguments[0], width)

        return returned(given), generate

    return intrinsic(typed)


bits64 = _bitcast(types.int64, types.float64, ir.IntType(64))
bits32 = _bitcast(types.int32, types.float32, ir.IntType(32))
float64_of = _bitcast(types.float64, types.int64, ir.DoubleType())
float32_of = _bitcast(types.float32, types.int32, ir.FloatType())


# no reordering of sums in these two: it would undo the rounding and the split of log 2
@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def exp64(x):  # type: ignore[no-untyped-def]
    """exp(x) in double precision, x <= 0."""
    x = max(x, LEAST64)
    shifted = x * INVERSE64 + ROUND64
    k = shifted - ROUND64
    r = (x - k * HIGH64) - k * LOW64
    r2 = r * r
    r4 = r2 * r2
    low = (1.0 + r) + r2 * (0.5 + r * C3)
    middle = (C4 + r * C5) + r2 * (C6 + r * C7)
    high = (C8 + r * C9) + r2 * (C10 + r * C11) + r4 * C12
    return (low + r4 * middle + r4 * r4 * high) * float64_of((bits64(shifted) + 1023) << 52)


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def exp32(x):  # type: ignore[no-untyped-def]
    """exp(x) in single precision, x <= 0."""
    x = max(x, LEAST32)
    shifted = x * INVERSE32 + ROUND32
    k = shifted - ROUND32
    r = (x - k * HIGH32) - k * LOW32
    p = ((((S7 * r + S6) * r + S5) * r + S4) * r + S3) * r + HALF32
    p = p * (r * r) + r + ONE32
    return p * float32_of((bits32(shifted) + np.int32(127)) << np.int32(23))


def exp(x: float) -> float:
    """exp(x) in the precision of x, x <= 0."""
    return math.exp(x)


@overload(exp)
def _exp(x):  # type: ignore[no-untyped-def]
    if x == types.float32:
        return lambda x: exp32(x)
    return lambda x: exp64(x)
