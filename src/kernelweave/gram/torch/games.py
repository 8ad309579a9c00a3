"""Games of features on a device: the loops of `_game_loops`, as operations on tensors of many games at once.

Rows r, background rows b, expansion points i and features f are the axes (R, B, I, F) of a block of games,
and

    found[j, r, f] = sum_b sum_i share[b, i, j] phi_f(r, b, i),     share[b, i, j] = weight[b] coef[i, j]

Everything is in double precision. One rule of nodes serves all games of a block: the rule of the game that
needs most nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import factorial, prod
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils import gen_batches

from ..._backend import free_bytes, torch
from ..._typing import FloatArray, IntArray
from .._game_loops import NOTHING

if TYPE_CHECKING:
    from ..games import ProductGame, SeenColumns

#: bytes of one tensor of a block of games; a few such tensors exist at a time
BLOCK_BYTES = 1 << 27


def product_values(
    game: ProductGame, seen: SeenColumns, weight: FloatArray, coef: FloatArray, device: Any
) -> FloatArray:
    """Shapley values (J, n, F) of a product of kernels, block after block.

    Parameters
    ----------
    game : ProductGame
    seen : SeenColumns
        What its kernels see of rows, background and points.
    weight : ndarray of shape (B,)
    coef : ndarray of shape (I, J)
    device : torch.device
    """
    counts = [table[0].shape[0] for table in seen.tables]
    out = torch.zeros((coef.shape[1], counts[0], len(seen.columns)), dtype=torch.float64, device=device)
    size = len(seen.columns) * prod(power + 1 for *_, power in game.powers)
    w, c = _tensor(weight, device), _tensor(coef, device)
    for rows, others, points in blocks(counts, size, device):
        x, b, z = (
            [_tensor(view, device) for view in seen.part(k, own)]
            for k, own in enumerate((rows, others, points))
        )
        share = w[others, None, None] * c[points]
        of_rows, of_background = (game.factors(table, z, seen) for table in (x, b))
        out[:, rows] += game.on_device(of_rows, of_background, share, seen.exponentials)
    return np.asarray(out.cpu().numpy())


def window_values(
    texts: Sequence[IntArray],
    weight: FloatArray,
    coef: FloatArray,
    lengths: FloatArray,
    shifts: FloatArray,
    table: FloatArray,
    device: Any,
) -> FloatArray:
    """Shapley values (J, n, L) of the places of strings: symbols of rows, background and points."""
    x, b, z = (torch.as_tensor(np.asarray(text, dtype=np.int64), device=device) for text in texts)
    w, c, orders = (_tensor(values, device) for values in (weight, coef, table))
    out = torch.zeros((coef.shape[1], *x.shape), dtype=torch.float64, device=device)
    for rows, others, points in blocks((len(x), len(b), len(z)), 2 * x.shape[1], device):
        share = w[others, None, None] * c[points]
        out[:, rows] += window_games(x[rows], z[points], b[others], share, lengths, shifts, orders)
    return np.asarray(out.cpu().numpy())


def blocks(counts: Sequence[int], size: int, device: Any) -> Iterator[tuple[slice, slice, slice]]:
    """Rows, background rows and points whose games, of `size` numbers each, take `BLOCK_BYTES`.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> found = list(blocks((5, 2, 3), 1 << 22, SimpleNamespace(type="cpu")))  # as many as memory allows
    >>> sum(int(np.prod([some.stop - some.start for some in block])) for block in found)
    30
    """
    free = free_bytes(device)
    room = BLOCK_BYTES if free is None else min(BLOCK_BYTES, free // 16)
    games = max(1, room // (8 * max(size, 1)))
    points = min(counts[2], games)
    others = max(1, min(counts[1], games // points))
    rows = max(1, games // (points * others))
    for own in gen_batches(counts[2], points):
        for other in gen_batches(counts[1], others):
            for some in gen_batches(counts[0], rows):
                yield some, other, own


def _tensor(values: Any, device: Any) -> Any:
    return torch.as_tensor(np.ascontiguousarray(values, dtype=np.float64), device=device)


def _summed(phi: Any, share: Any) -> Any:
    """sum_b sum_i share[b, i, j] phi[r, b, i, f], shape (J, R, F)."""
    return torch.einsum("rgf,gj->jrf", phi.flatten(1, 2), share.flatten(0, 1))


# -- one block of games -----------------------------------------------------------------------


def product_games(V: Any, A: Any, share: Any, rules: tuple[Any, ...]) -> Any:
    """Games prod_f k_f of positive factors V (R, I, F) and A (B, I, F): see `_game_loops.product_games`."""
    delta = V[:, None] - A
    spread = (delta.abs() / (V[:, None] + A + 1e-300)).sum(dim=-1)
    differ = (delta != 0).sum(dim=-1)
    nothing = (torch.maximum(V[:, None], A).amin(dim=-1) < NOTHING) | (differ == 0)
    phi = torch.zeros_like(delta)
    for u, part in _nodes(rules, spread, differ, nothing):
        mixed = torch.add(A, delta, alpha=u)
        phi.addcdiv_(mixed.prod(dim=-1, keepdim=True), mixed, value=part)
    phi.masked_fill_(nothing[..., None], 0.0)
    return _summed(phi.mul_(delta), share)


def _nodes(rules: tuple[Any, ...], spread: Any, differ: Any, nothing: Any) -> list[tuple[float, float]]:
    """Nodes and weights of the rule that serves all of these games."""
    limits, starts, nodes, shares = rules
    enough = torch.as_tensor(limits, device=spread.device)
    counts = 2 * torch.as_tensor(np.diff(starts), device=spread.device)
    rule = torch.minimum(torch.searchsorted(enough, spread), torch.searchsorted(counts, differ))
    q = int(rule.masked_fill(nothing, -1).max())
    own = slice(starts[q], starts[q + 1]) if q >= 0 else slice(0)
    return list(zip(nodes[own].tolist(), shares[own].tolist(), strict=True))


def sum_games(S: Any, T: Any, share: Any) -> Any:
    """Games sum_f s_f of summands S (R, I, F) and T (B, I, F): no interactions, so no games of pairs."""
    other = torch.einsum("bif,bij->jf", T, share)
    return torch.einsum("rif,ij->jrf", S, share.sum(dim=0)) - other[:, None]


def power_games(
    S: Any, T: Any, constant: float, share: Any, cumulants: FloatArray, slopes: FloatArray
) -> Any:
    """Games (c + sum_f s_f)^p of summands S (R, I, F) and T (B, I, F): see `_game_loops.power_games`."""
    delta, p = S[:, None] - T, cumulants.shape[1] - 1
    start = constant + T.sum(dim=-1)
    power, sums = delta, [delta.sum(dim=-1)]
    for _ in range(2, p + 1):
        power = power * delta
        sums.append(power.sum(dim=-1))
    A = [torch.zeros_like(sums[0]) for _ in range(p)]
    for b, slope in zip(cumulants, slopes, strict=True):
        M = [torch.ones_like(sums[0])]
        for n in range(1, p):
            terms = (m * float(b[m]) * sums[m - 1] * M[n - m] for m in range(1, n + 1))
            M.append((start * M[n - 1] + sum(terms)) / n)
        for k in range(1, p + 1):
            A[k - 1] += float(slope[k]) * M[p - k]
    phi = A[-1][..., None] * delta
    for coefficient in reversed(A[:-1]):
        phi = phi.add_(coefficient[..., None]).mul_(delta)
    return _summed(phi, share)


def polynomial_games(
    rows: tuple[Any, Any],
    background: tuple[Any, Any],
    constants: FloatArray,
    share: Any,
    powers: IntArray,
    table: IntArray,
    rules: tuple[Any, ...],
) -> Any:
    """Games prod_f v_f prod_k (c_k + sum_f s_fk)^p_k: see `_game_loops.polynomial_games`.

    A polynomial is the list of its coefficients, tensors of all games and features.
    """
    (V, S), (A, T) = rows, background
    x = [value[:, None] for value in _exponential(V, S, powers)]
    b = [value[None] for value in _exponential(A, T, powers)]
    delta = [one - other for one, other in zip(x, b, strict=True)]
    spread, differ = _apart(x, b, torch.maximum(S[:, None].abs(), T.abs()).sum(dim=-2), constants, powers)
    top = float(prod(factorial(int(m)) for m in powers[-1]))
    first = [
        float(prod(c ** int(m) / factorial(int(m)) for c, m in zip(constants, term, strict=True)))
        for term in powers
    ]
    last = [(int(n), int(m)) for n, m, made in table if made == len(powers) - 1]
    phi = torch.zeros_like(delta[0])
    for u, part in _nodes(rules, spread, differ, differ == 0):
        mixed = [torch.add(other, change, alpha=u) for other, change in zip(b, delta, strict=True)]
        rest = _without_each(mixed, first, table)
        phi += (part * top) * sum(delta[n] * rest[m] for n, m in last)
    return _summed(phi, share)


def _apart(x: list[Any], b: list[Any], sums: Any, constants: FloatArray, powers: IntArray) -> tuple[Any, Any]:
    """How far apart factors of two rows are, in the norms of `_game_loops._norms`, and how many differ."""
    sizes = sums + _tensor(np.abs(constants) + 1e-300, sums.device)
    apart, together = torch.zeros_like(x[0] - b[0]), torch.full_like(x[0] - b[0], 1e-300)
    for one, other, term in zip(x, b, powers, strict=True):
        norm = (sizes ** -_tensor(term, sums.device)).prod(dim=-1)[..., None]
        apart += norm * (one - other).abs()
        together += norm * (one + other).abs()
    return (apart / together).sum(dim=-1), (apart != 0).sum(dim=-1)


def _exponential(scale: Any, s: Any, powers: IntArray) -> list[Any]:
    """scale * exp(s_1 e_1 + s_2 e_2 + ...), truncated; `s` has an axis for 1, 2, ... at the end."""
    found = []
    for term in powers:
        value = scale
        for k, m in enumerate(term):
            value = value * (s[..., k] ** int(m) / factorial(int(m))) if m else value
        found.append(value)
    return found


def _without_each(factors: list[Any], first: list[float], table: IntArray) -> list[Any]:
    """The product of `first` and all factors but one, for each factor along the last axis."""
    one = [torch.full_like(factors[0][..., :1], value) for value in first]
    unit = [torch.full_like(factors[0][..., :1], float(n == 0)) for n in range(len(first))]
    before = _running([torch.cat([o, f[..., :-1]], dim=-1) for o, f in zip(one, factors, strict=True)], table)
    back = [torch.cat([o, f.flip(-1)[..., :-1]], dim=-1) for o, f in zip(unit, factors, strict=True)]
    after = [value.flip(-1) for value in _running(back, table)]
    return _multiply(before, after, table)


def _running(factors: list[Any], table: IntArray) -> list[Any]:
    """Products of each factor and all before it along the last axis, in about log2 F steps."""
    step = 1
    while step < factors[0].shape[-1]:
        more = _multiply([f[..., step:] for f in factors], [f[..., :-step] for f in factors], table)
        factors = [torch.cat([f[..., :step], m], dim=-1) for f, m in zip(factors, more, strict=True)]
        step *= 2
    return factors


def _multiply(x: list[Any], y: list[Any], table: IntArray) -> list[Any]:
    """The product of two truncated polynomials; `table` says which two coefficients make which."""
    found = [torch.zeros_like(x[0]) for _ in x]
    for n, m, made in table.tolist():
        found[made].addcmul_(x[n], y[m])
    return found


def window_games(
    X: Any, Z: Any, background: Any, share: Any, lengths: FloatArray, shifts: FloatArray, table: Any
) -> Any:
    """Games of substrings that are equal, all starts at once: see `_game_loops.window_games`."""
    longest, reach = len(lengths) - 1, len(shifts) - 1
    phi = torch.zeros((X.shape[0], *share.shape[:2], X.shape[1]), dtype=share.dtype, device=share.device)
    for shift in range(-reach, reach + 1):
        low, high = max(0, -shift), min(Z.shape[1], X.shape[1] - shift)
        if low >= high or shifts[abs(shift)] == 0.0:
            continue
        z, own = Z[:, low:high], slice(low + shift, high + shift)
        here = ((X[:, None, own] == z) & (z != 0))[:, None]
        there = ((background[:, None, own] == z) & (z != 0))[None]
        mine, theirs = here & ~there, there & ~here
        found = _windows(mine, theirs, here | there, lengths[: 1 + min(longest, high - low)], table)
        phi[..., own] += float(shifts[abs(shift)]) * found
    return _summed(phi, share)


def _windows(mine: Any, theirs: Any, equal: Any, lengths: FloatArray, table: Any) -> Any:
    """What windows of all lengths add to each place, from where symbols of one row, or of any, are equal."""
    size = equal.shape[-1]
    p, q = (
        torch.zeros(equal.shape, dtype=torch.int64, device=equal.device),
        torch.zeros_like(equal, dtype=torch.int64),
    )
    alive, found = torch.ones_like(equal), torch.zeros(equal.shape, dtype=table.dtype, device=equal.device)
    for d in range(1, len(lengths)):
        count = size - d + 1  # starts of windows of d symbols
        alive, p, q = alive[..., :count], p[..., :count], q[..., :count]
        alive = alive & equal[..., d - 1 :]
        p, q = p + mine[..., d - 1 :], q + theirs[..., d - 1 :]
        if lengths[d] == 0.0:
            continue
        for counts, where, sign in (((p, q), mine, 1.0), ((q, p), theirs, -1.0)):
            each = table[counts] * alive * (sign * float(lengths[d]))
            for place in range(d):
                found[..., place : place + count] += each * where[..., place : place + count]
    return found
