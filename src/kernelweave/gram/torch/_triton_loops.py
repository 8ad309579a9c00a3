"""Loops over many Gaussian kernels of one base, compiled by Triton for the GPU.

A program holds a tile of the base in registers and goes through all kernels while it is there. The
exponentials are powers of two, exp(-g d) = 2^(-g d / log 2): one instruction each in single precision.
"""

# Triton reads the types of its functions itself
# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..._backend import torch

try:
    import triton
    import triton.language as tl
except ImportError:  # the plain versions are used
    triton = tl = None

#: rows and columns of a tile
ROWS, COLUMNS = 32, 128

#: for kernels on subsets: pairs of samples and kernels in a tile, and programs among which kernels are shared
PAIRS, KERNELS, PROGRAMS = 64, 64, 4096


#: rows and columns of a tile: of a matrix that is read once, of some rows of it, and of a matrix whose
#: entries are computed; and columns of points at a time
THIN, SOME, SQUARE, DEPTH, WARPS = (4, 512), (16, 256), (64, 64), 32, 4


#: sizes: the loops are compiled once for all values
SIZES = ("n", "m", "K", "F", "n_pairs", "n_columns", "per_program", "base_row", "out_row")


def jit(function: Callable[..., Any]) -> Any:
    """`triton.jit`, if Triton is installed, without a separate version for every size."""
    if triton is None:
        return function
    known = function.__code__.co_varnames[: function.__code__.co_argcount]
    return triton.jit(function, do_not_specialize=[name for name in SIZES if name in known])


@jit
def _add(
    base, gammas, factors, centres, out, n, m, base_row, out_row, K, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (i[:, None] < n) & (j[None, :] < m)
    d = tl.load(base + i[:, None] * base_row + j[None, :], mask=inside, other=0.0)
    place = out + i[:, None] * out_row + j[None, :]
    total = tl.load(place, mask=inside, other=0.0)
    for k in range(K):
        total += tl.load(factors + k) * (tl.exp2(d * tl.load(gammas + k)) - tl.load(centres + k))
    tl.store(place, total, mask=inside)


@jit
def _inner(
    base,
    gammas,
    centres,
    left,
    right,
    out,
    n,
    m,
    n_columns,
    base_row,
    K,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (i[:, None] < n) & (j[None, :] < m)
    d = tl.load(base + i[:, None] * base_row + j[None, :], mask=inside, other=0.0)
    w = tl.zeros_like(d)
    for c in range(n_columns):
        a = tl.load(left + c * n + i, mask=i < n, other=0.0)
        b = tl.load(right + c * m + j, mask=j < m, other=0.0)
        w += a[:, None] * b[None, :]
    for k in range(K):
        value = tl.exp2(d * tl.load(gammas + k)) - tl.load(centres + k)
        tile = tl.sum(tl.sum(w * value, axis=1), axis=0)
        tl.atomic_add(out + k, tile.to(tl.float64))


@jit
def _multiply(
    base, gammas, centres, vector, out, n, m, base_row, K, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (i[:, None] < n) & (j[None, :] < m)
    d = tl.load(base + i[:, None] * base_row + j[None, :], mask=inside, other=0.0)
    v = tl.load(vector + j, mask=j < m, other=0.0)
    for k in range(K):
        value = tl.exp2(d * tl.load(gammas + k)) - tl.load(centres + k)
        part = tl.sum(value * v[None, :], axis=1)
        tl.atomic_add(out + k * n + i, part.to(tl.float64), mask=i < n)


@jit
def _times(S, v, out, n, m, base_row, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Rows of a matrix in single precision times a column in double, one per program of the second axis."""
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    k = tl.program_id(1).to(tl.int64)
    total = tl.zeros((ROWS, COLUMNS), tl.float64)
    for start in range(0, m, COLUMNS):
        j = start + tl.arange(0, COLUMNS)
        inside = (i[:, None] < n) & (j[None, :] < m)
        s = tl.load(S + i[:, None] * base_row + j[None, :], mask=inside, other=0.0)
        total += s.to(tl.float64) * tl.load(v + k * m + j, mask=j < m, other=0.0)[None, :]
    tl.store(out + k * n + i, tl.sum(total, axis=1), mask=i < n)


@jit
def _times_some(S, samples, v, out, n, m, base_row, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The sum of some rows of a matrix in single precision, each times a number in double precision."""
    j = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), tl.float64)
    for start in range(0, n, ROWS):
        k = start + tl.arange(0, ROWS)
        i = tl.load(samples + k, mask=k < n, other=0)
        inside = (k[:, None] < n) & (j[None, :] < m)
        s = tl.load(S + i[:, None] * base_row + j[None, :], mask=inside, other=0.0)
        total += s.to(tl.float64) * tl.load(v + k, mask=k < n, other=0.0)[:, None]
    tl.store(out + j, tl.sum(total, axis=0), mask=j < m)


@jit
def _stream(
    left_ids,
    left,
    left_squares,
    right_ids,
    right,
    right_squares,
    rates,
    factors,
    v,
    out,
    shift,
    n,
    m,
    K,
    n_columns,
    per_program,
    width,
    CHAIN: tl.constexpr,
    COLUMNS_OF_V: tl.constexpr,
    FEATURES: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """Sums over tiles of pairs; their distances and kernel values are only ever in registers."""
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    f, c = tl.arange(0, FEATURES), tl.arange(0, COLUMNS_OF_V)
    own = tl.load(left_ids + i, mask=i < n, other=-1)
    own_square = tl.load(left_squares + i, mask=i < n, other=0.0)
    total = tl.zeros((ROWS, COLUMNS_OF_V), tl.float64)
    first = tl.program_id(1) * per_program
    for start in range(first, first + per_program, COLUMNS):
        j = start + tl.arange(0, COLUMNS).to(tl.int64)
        products = tl.zeros((ROWS, COLUMNS), tl.float32)
        for g in range(0, width, FEATURES):
            x = tl.load(left + i[:, None] * width + (g + f)[None, :], mask=i[:, None] < n, other=0.0)
            z = tl.load(right + j[None, :] * width + (g + f)[:, None], mask=j[None, :] < m, other=0.0)
            products = tl.dot(x, z, products, input_precision="tf32x3")
        other = tl.load(right_ids + j, mask=j < m, other=-2)
        square = tl.load(right_squares + j, mask=j < m, other=0.0)
        d = tl.maximum(own_square[:, None] + square[None, :] - 2.0 * products, 0.0)
        d = tl.where(own[:, None] == other[None, :], 0.0, d)
        value = tl.zeros((ROWS, COLUMNS), tl.float32) - shift
        for k in range(K):
            power = tl.exp2(d * tl.load(rates + k))
            for step in tl.static_range(CHAIN):
                value += tl.load(factors + k * CHAIN + step) * power
                power = power * power
        for k in range(n_columns):
            a = tl.load(v + k * m + j, mask=j < m, other=0.0)
            part = tl.sum(value.to(tl.float64) * a[None, :], axis=1)
            total += tl.where(c[None, :] == k, part[:, None], 0.0)
    place = out + (tl.program_id(1) * n + i[:, None]) * n_columns + c[None, :]
    tl.store(place, total, mask=(i[:, None] < n) & (c[None, :] < n_columns))


@jit
def _distances(pairs, subsets, p, k, n_pairs, K, F, WIDTH: tl.constexpr):
    """Sums of differences (pairs, F) over subsets (K, F) of columns: a tile of the product of the two."""
    f = tl.arange(0, WIDTH)
    left = tl.load(
        pairs + p[:, None] * F + f[None, :], mask=(p[:, None] < n_pairs) & (f[None, :] < F), other=0.0
    )
    right = tl.load(subsets + k[None, :] * F + f[:, None], mask=(k[None, :] < K) & (f[:, None] < F), other=0)
    return tl.dot(left, right.to(tl.float32), input_precision="tf32x3")


@jit
def _add_subsets(
    pairs,
    subsets,
    rates,
    factors,
    centres,
    out,
    n_pairs,
    K,
    F,
    per_program,
    WIDTH: tl.constexpr,
    PAIRS: tl.constexpr,
    KERNELS: tl.constexpr,
):
    p = tl.program_id(0).to(tl.int64) * PAIRS + tl.arange(0, PAIRS)
    first = tl.program_id(1).to(tl.int64) * per_program
    total = tl.zeros((PAIRS,), tl.float64)
    for start in range(0, per_program, KERNELS):
        k = first + start + tl.arange(0, KERNELS)
        d = _distances(pairs, subsets, p, k, n_pairs, K, F, WIDTH)
        rate = tl.load(rates + k, mask=k < K, other=0.0)
        factor = tl.load(factors + k, mask=k < K, other=0.0)
        centre = tl.load(centres + k, mask=k < K, other=0.0)
        value = tl.exp2(d * rate[None, :]) - centre[None, :]
        total += tl.sum(value * factor[None, :], axis=1).to(tl.float64)
    tl.atomic_add(out + p, total, mask=p < n_pairs)


@jit
def _weigh_subsets(
    pairs,
    subsets,
    rates,
    weights,
    centres,
    out,
    n_pairs,
    K,
    F,
    WIDTH: tl.constexpr,
    PAIRS: tl.constexpr,
    KERNELS: tl.constexpr,
):
    k = tl.program_id(0).to(tl.int64) * KERNELS + tl.arange(0, KERNELS)
    rate = tl.load(rates + k, mask=k < K, other=0.0)
    centre = tl.load(centres + k, mask=k < K, other=0.0)
    total = tl.zeros((KERNELS,), tl.float64)
    for start in range(0, n_pairs, PAIRS):
        p = start + tl.arange(0, PAIRS).to(tl.int64)
        d = _distances(pairs, subsets, p, k, n_pairs, K, F, WIDTH)
        weight = tl.load(weights + p, mask=p < n_pairs, other=0.0)
        value = tl.exp2(d * rate[None, :]) - centre[None, :]
        total += tl.sum(value * weight[:, None], axis=0).to(tl.float64)
    tl.store(out + k, total, mask=k < K)


def add_gaussians(base: Any, gammas: Any, factors: Any, centres: Any, out: Any) -> None:
    """out += sum_k factors[k] (exp(-gammas[k] base) - centres[k])."""
    n, m = base.shape
    sizes = (n, m, base.stride(0), out.stride(0), len(gammas), ROWS, COLUMNS)
    _add[_grid(n, m)](base, _powers(gammas), factors, centres, out, *sizes)


def inner_gaussians(base: Any, gammas: Any, centres: Any, left: Any, right: Any) -> Any:
    """sum_ij (left right')_ij (exp(-gammas[k] base_ij) - centres[k]) for every k.

    Tiles are summed in single precision, their sums in double.
    """
    n, m = base.shape
    out = torch.zeros(len(gammas), dtype=torch.float64, device=base.device)
    sizes = (n, m, left.shape[1], base.stride(0), len(gammas), ROWS, COLUMNS)
    sides = (left.T.contiguous(), right.T.contiguous())
    _inner[_grid(n, m)](base, _powers(gammas), centres, *sides, out, *sizes)
    return out


def multiply_gaussians(base: Any, gammas: Any, centres: Any, vector: Any) -> Any:
    """(exp(-gammas[k] base) - centres[k]) vector for every k, shape (K, n_rows)."""
    n, m = base.shape
    out = torch.zeros((len(gammas), n), dtype=torch.float64, device=base.device)
    sizes = (n, m, base.stride(0), len(gammas), ROWS, COLUMNS)
    _multiply[_grid(n, m)](base, _powers(gammas), centres, vector, out, *sizes)
    return out


def multiply_double(S: Any, v: Any) -> Any:
    """S v of a matrix in single precision, for v of shape (m,) or (m, c) in double; read once per column."""
    (n, m), columns = S.shape, v.reshape(len(v), -1).T.contiguous()
    out = torch.empty((len(columns), n), dtype=torch.float64, device=S.device)
    rows, wide = THIN
    _times[(-(-n // rows), len(columns))](S, columns, out, n, m, S.stride(0), rows, wide)
    return out.T.reshape(n, *v.shape[1:])


def multiply_some(S: Any, samples: Any, v: Any) -> Any:
    """S[samples]' v of a matrix in single precision, for v of shape (n_samples,) in double."""
    out = torch.empty(S.shape[1], dtype=torch.float64, device=S.device)
    rows, wide = SOME
    sizes = (len(samples), S.shape[1], S.stride(0), rows, wide)
    _times_some[(-(-S.shape[1] // wide),)](S, samples, v, out, *sizes)
    return out


def stream_gaussians(
    left_ids: Any,
    left: Any,
    left_squares: Any,
    right_ids: Any,
    right: Any,
    right_squares: Any,
    rates: Any,
    factors: Any,
    shift: float,
    v: Any,
) -> Any:
    """(sum_ql factors[q, l] exp(rates[q] d)^(2^l) - shift) v, d the squared distances of points.

    Parameters
    ----------
    left_ids, right_ids : tensor of int
        Points with the same number are the same point: their distance is set to zero, whatever rounding
        gives.
    left, right : tensor of shape (n, F), (m, F)
        F a multiple of 64.
    left_squares, right_squares : tensor
        Their squared lengths.
    v : tensor of shape (m,) or (m, c)
        In double precision, as are the sums.
    """
    n, m, columns = len(left), len(right), v.reshape(len(v), -1).T.contiguous()
    rows, wide = SQUARE
    tiles, pieces = -(-n // rows), -(-m // wide)
    splits = max(1, min(pieces, PROGRAMS // tiles))
    per_program = -(-pieces // splits) * wide
    grid = (tiles, -(-m // per_program))
    out = torch.empty((grid[1], n, len(columns)), dtype=torch.float64, device=left.device)
    points = (left_ids, left, left_squares, right_ids, right, right_squares)
    given = (_powers(-rates), factors, columns, out, shift)
    sizes = (n, m, len(rates), len(columns), per_program, left.shape[1])
    widths = (len(factors) // len(rates), _power_of_two(len(columns)), DEPTH, rows, wide)
    _stream[grid](*points, *given, *sizes, *widths, num_warps=WARPS)
    return out.sum(dim=0).reshape(n, *v.shape[1:])


def add_subsets(pairs: Any, subsets: Any, gammas: Any, factors: Any, centres: Any) -> Any:
    """sum_k factors[k] (exp(-gammas[k] pairs subsets[k]) - centres[k]), shape (n_pairs,)."""
    (n_pairs, F), K = pairs.shape, len(gammas)
    out = torch.zeros(n_pairs, dtype=torch.float64, device=pairs.device)
    tiles = -(-n_pairs // PAIRS)
    splits = max(1, min(-(-K // KERNELS), PROGRAMS // tiles))
    per_program = -(-K // (splits * KERNELS)) * KERNELS
    sizes = (n_pairs, K, F, per_program, _width(F), PAIRS, KERNELS)
    given = (pairs.contiguous(), subsets, _powers(gammas), factors, centres, out)
    _add_subsets[(tiles, -(-K // per_program))](*given, *sizes)
    return out


def weigh_subsets(pairs: Any, subsets: Any, gammas: Any, weights: Any, centres: Any) -> Any:
    """sum_p weights[p] (exp(-gammas[k] pairs[p] subsets[k]) - centres[k]) for every k."""
    (n_pairs, F), K = pairs.shape, len(gammas)
    out = torch.empty(K, dtype=torch.float64, device=pairs.device)
    sizes = (n_pairs, K, F, _width(F), PAIRS, KERNELS)
    given = (pairs.contiguous(), subsets, _powers(gammas), weights, centres, out)
    _weigh_subsets[(-(-K // KERNELS),)](*given, *sizes)
    return out


def _width(F: int) -> int:
    """Columns of a tile of differences."""
    return max(16, _power_of_two(F))


def _power_of_two(size: int) -> int:
    """The smallest power of two that is no smaller."""
    return 1 << (size - 1).bit_length()


def _powers(gammas: Any) -> Any:
    return (gammas.double() / -math.log(2.0)).to(gammas.dtype)


def _grid(n: int, m: int) -> tuple[int, int]:
    return (-(-n // ROWS), -(-m // COLUMNS))
