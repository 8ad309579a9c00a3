"""Figure 1 of Sindhwani & Lozano (2011): MKL-GOMP against the norms on the toy problem.

Two Gaussian classes in 50 dimensions with one linear kernel per dimension, of which 0, 44, 64, 82, 92 or 98 %
are noise (the toy data of Kloft et al. 2011); 50 training samples, squared loss. For lq-MKL with q = 1, 4/3,
2, 4 and infinity, C is chosen on 10,000 validation samples. For MKL-GOMP, lambda and the number of kernels
are chosen on the same samples; every lambda has a path of its own. Test errors are exact, as on an infinite
test set.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from _toy import (
    BAYES,
    LEVELS,
    NORMS,
    best,
    draw_task,
    exact_error,
    greedy_lines,
    mkl_lines,
)
from reproduce import (
    Experiment,
    Line,
    Mode,
    Summary,
    all_above,
    by,
    mean,
    select,
    table,
    threshold,
    with_error,
)
from scipy.stats import spearmanr

import kernelweave as kw

COSTS = 10.0 ** np.arange(-4.0, 1.1, 0.5)
RIDGES = 10.0 ** np.arange(-2.0, 4.1, 0.5)
N, GREEDY = 50, "MKL-GOMP"
#: norms whose weights a duality gap of 1e-3 leaves open at small C
TIGHT = ("l4/3", "l2", "l4")


def cells(mode: Mode) -> list[dict[str, Any]]:
    """All noise levels, or three of them."""
    levels = mode.pick(quick=(0, 82, 98), full=tuple(LEVELS))
    count = mode.count(quick=3, full=10)
    methods = (*NORMS, GREEDY)
    found = [{"noise": k, "method": m, "seed": s} for s in range(count) for k in levels for m in methods]
    return [{**cell, "tight": True} if cell["method"] in TIGHT else cell for cell in found]


def run(noise: int, method: str, seed: int, tight: bool = False) -> dict[str, Any]:
    """Error of what is best on the validation samples, and how many kernels and which ridge it has."""
    task = draw_task(N, noise, seed)
    if method == GREEDY:
        found = greedy_lines(task, RIDGES)
        line, ridge = found[best([one for one, _ in found], task)]
        kernels = int(line.weights.sum())
        return {
            "error": exact_error(line, task.mean),
            "kernels": kernels,
            "share": 2 * kernels,
            "ridge": ridge,
        }
    lines = mkl_lines(kw.LpNorm(NORMS[method]), task, COSTS, squared=True, tight=tight)
    line = lines[best(lines, task)]
    return {"error": exact_error(line, task.mean), "gap": line.gap}


Found = dict[str, dict[Any, float]]  # errors by seed of every method


def summarise(rows: list[dict[str, Any]]) -> Summary:
    """GOMP against the envelope at every level, how it adapts, and the norms."""
    levels = [noise for noise in LEVELS if select(rows, "error", noise=noise)]
    methods = (*NORMS, GREEDY)
    errors = {k: {m: dict(by(rows, "error", "seed", noise=k, method=m)) for m in methods} for k in levels}
    lines = [envelope(errors[noise], noise) for noise in levels]
    lines += [line for noise in levels for line in norms(errors[noise], noise)]
    lines += [adapts(rows, levels), smoothness(rows, levels)]
    tables = [
        table("Test error in %", rows, "error", "method", "noise"),
        table("Kernels MKL-GOMP chooses (of 50)", rows, "kernels", "method", "noise", 1),
    ]
    count = len({row["seed"] for row in rows})
    notes = [f"{count} repetitions (the paper: 10), ± standard errors; the Bayes error is {BAYES:.2f} %."]
    return Summary(lines, tables, notes)


def envelope(found: Found, noise: int) -> Line:
    """GOMP below every norm."""
    what = f"{noise} % noise: MKL-GOMP is below the lower envelope of the norms"
    greedy, others = {GREEDY: found[GREEDY]}, {norm: found[norm] for norm in NORMS}
    return all_above(what, greedy, others, paper="tends to be", higher=False, unit=" points")


def norms(found: Found, noise: int) -> list[Line]:
    """l1 is best with one informative kernel, mostly worst with more; errors fall with q, or rise."""
    l1, others = {"l1": found["l1"]}, {norm: found[norm] for norm in NORMS if norm != "l1"}
    sparse = noise == 98
    what = f"{noise} % noise: l1 is {'better' if sparse else 'worse'} than the norms q > 1"
    pair = (l1, others) if sparse else (others, l1)
    lines = [all_above(what, *pair, paper="excels" if sparse else "mostly", higher=False, unit=" points")]
    if noise in (0, 98):
        rising = "rises" if sparse else "falls"
        units = sorted(set.intersection(*(set(found[norm]) for norm in NORMS)))
        ranks = [
            float(spearmanr(range(len(NORMS)), [found[norm][unit] for norm in NORMS]).statistic)
            for unit in units
        ]
        what = f"{noise} % noise: the error {rising} with q (rank correlation)"
        lines.append(threshold(what, ranks, 0.0, paper="yes", above=sparse))
    return lines


def adapts(rows: list[dict[str, Any]], levels: list[int]) -> Line:
    """Fewer kernels where fewer are informative: rank correlation over the levels, draw by draw."""
    shares = [by(rows, "share", "seed", noise=noise, method=GREEDY) for noise in levels]
    units = sorted(set.intersection(*map(set, shares)))
    ranks = [float(spearmanr(levels, [share[unit] for share in shares]).statistic) for unit in units]
    means = ", ".join(f"{mean(list(share.values())):.0f}" for share in shares)
    what = "MKL-GOMP selects fewer kernels, the more of them are noise (rank correlation)"
    chosen = f" ({means} % at {', '.join(map(str, levels))} % noise)"
    return threshold(what, ranks, 0.0, paper="adapts", above=False, unit=chosen)


def smoothness(rows: list[dict[str, Any]], levels: list[int]) -> Line:
    """The ridge it needs changes with the number of informative kernels."""
    logs = [np.log10(select(rows, "ridge", noise=noise, method=GREEDY)) for noise in levels]
    text = ", ".join(with_error(values.tolist(), 2) for values in logs)
    what = f"MKL-GOMP: log10 of lambda at {', '.join(map(str, levels))} % noise"
    return Line(what, "changes with the noise", text, "ours alone", n=len(logs[0]))


def draw(rows: list[dict[str, Any]]) -> Any:
    """Errors, the share of kernels chosen, and lambda."""
    import matplotlib.pyplot as plt

    levels = [noise for noise in LEVELS if select(rows, "error", noise=noise)]
    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(12, 3.8), layout="constrained", width_ratios=(2, 1, 1)
    )
    for method in (*NORMS, GREEDY):
        values = [select(rows, "error", noise=noise, method=method) for noise in levels]
        style = "ks--" if method == GREEDY else "o-"
        left.plot([mean(v) for v in values], style, markersize=4, label=method)
    left.axhline(BAYES, color="black", linestyle=":", label="Bayes error")
    left.set(ylabel="test error (%)", ylim=(3, 22))
    left.legend(fontsize="small", ncols=2)
    middle.plot([mean(select(rows, "share", noise=k, method=GREEDY)) for k in levels], "ks--", label="chosen")
    middle.plot([2 * LEVELS[k] for k in levels], ":", color="grey", label="informative")
    middle.set(ylabel="kernels (%)")
    middle.legend(fontsize="small")
    right.semilogy(
        [np.exp(mean(np.log(select(rows, "ridge", noise=k, method=GREEDY)))) for k in levels], "ks--"
    )
    right.set(ylabel="lambda")
    for ax in (left, middle, right):
        ax.set(xlabel="noise kernels (%)", xticks=range(len(levels)), xticklabels=levels)
    return figure


EXPERIMENT = Experiment(
    title="greedy selection against the norms",
    paper="Sindhwani & Lozano (2011), NIPS 24, Figure 1",
    cells=cells,
    run=run,
    summarise=summarise,
    draw=draw,
)
