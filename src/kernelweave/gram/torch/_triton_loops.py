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

#: pairs of samples and kernels of a tile of kernels on subsets, and programs that share out the kernels
PAIRS, KERNELS, PROGRAMS = 64, 64, 4096


#: sizes: compiled once whatever they are
SIZES = ("n", "m", "K", "F", "n_pairs", "per_program", "base_row", "out_row")


def jit(function: Callable[..., Any]) -> Any:
    """`triton.jit`, where there is Triton, compiling no version of its own for any size."""
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
    base, gammas, centres, left, right, out, n, m, base_row, K, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    i = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    j = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    inside = (i[:, None] < n) & (j[None, :] < m)
    d = tl.load(base + i[:, None] * base_row + j[None, :], mask=inside, other=0.0)
    a = tl.load(left + i, mask=i < n, other=0.0)
    b = tl.load(right + j, mask=j < m, other=0.0)
    w = a[:, None] * b[None, :]
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
    """sum_ij left_i right_j (exp(-gammas[k] base_ij) - centres[k]) for every k.

    Tiles are summed in single precision, their sums in double.
    """
    n, m = base.shape
    out = torch.zeros(len(gammas), dtype=torch.float64, device=base.device)
    sizes = (n, m, base.stride(0), len(gammas), ROWS, COLUMNS)
    _inner[_grid(n, m)](base, _powers(gammas), centres, left, right, out, *sizes)
    return out


def multiply_gaussians(base: Any, gammas: Any, centres: Any, vector: Any) -> Any:
    """(exp(-gammas[k] base) - centres[k]) vector for every k, shape (K, n_rows)."""
    n, m = base.shape
    out = torch.zeros((len(gammas), n), dtype=torch.float64, device=base.device)
    sizes = (n, m, base.stride(0), len(gammas), ROWS, COLUMNS)
    _multiply[_grid(n, m)](base, _powers(gammas), centres, vector, out, *sizes)
    return out


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
    """Columns of a tile of differences: a power of two."""
    return max(16, 1 << (F - 1).bit_length())


def _powers(gammas: Any) -> Any:
    return (gammas.double() / -math.log(2.0)).to(gammas.dtype)


def _grid(n: int, m: int) -> tuple[int, int]:
    return (-(-n // ROWS), -(-m // COLUMNS))
