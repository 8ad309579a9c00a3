"""Figures 4 and 5 of Kloft et al. (2011) on a stand-in: gene starts in simulated DNA.

Stand-in: simulated data. The paper's sequences (8,508 transcription start sites of dbTSS, windows of 2,000
bases, 60,000 windows for training) are not available; nothing here says how good a norm is on real DNA.

A window has 300 bases, the start after 120 of them. Bases are independent; their share of G and C differs
from sequence to sequence. Windows with a start (half of all) have, each planted on its own: a TATA box 30
bases before the start, an initiator at it and a third word 25 bases after it, each in a share of the windows,
with mutations and a jitter of 2 bases; words of six letters anywhere upstream; others anywhere downstream;
and a wave of G and C along the window, which leaves its composition as it is. The other windows have a
quarter as many words. The strengths were set so that single kernels reach about the AUC that the paper
reports at n = 2,000 (signal 0.89, promoter 0.86, first exon 0.84, angles 0.55, energies 0.74), before any
norm was tried; nothing else was set.

There are five kernels, as in the paper: weighted degree with shifts around the start; spectrum kernels of the
bases upstream and downstream; linear kernels of twist angles (Olson et al. 1998, far upstream) and stacking
energies (SantaLucia 1998, around the start) of neighbouring bases, averaged over 10. All are spherically
normalised, k(x, z) / sqrt(k(x, x) k(z, z)). The loss is the hinge loss; C is chosen from 2^-2 .. 2^5 by the
AUC on 1,000 validation windows, and the AUC on 2,000 test windows is reported, for p = 1, 4/3, 2, 4 and the
plain sum. Training sets of the same size are disjoint.
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from reproduce import (
    Experiment,
    Line,
    Mode,
    Summary,
    all_above,
    by,
    mean,
    ordering,
    select,
    standard_error,
    table,
)
from sklearn.metrics import roc_auc_score

import kernelweave as kw
from kernelweave import KernelStack
from kernelweave.kernels import Kernel, Linear, Spectrum, WeightedDegree

LETTERS = np.array(list("ACGT"))
START, LENGTH = 120, 300
N_VALIDATION, N_TEST = 1000, 2000
SIZES = (100, 200, 400, 800, 1600)
COSTS = 2.0 ** np.arange(-2.0, 5.1)
NORMS = {"p = 1": 1.0, "p = 4/3": 4 / 3, "p = 2": 2.0, "p = 4": 4.0, "plain sum": np.inf}
SPARSE, BEST, SUM = "p = 1", "p = 2", "plain sum"
#: kernels, and the AUC each reaches alone in the paper at n = 2,000
SINGLES = {"signal": 0.89, "promoter": 0.86, "first exon": 0.84, "angles": 0.55, "energies": 0.74}
STRONG = ("signal", "promoter", "first exon")

#: what is planted, and how strongly
#: word around the start -> its place, and the share of the windows that have it
SIGNAL = {"TATAAA": (-30, 0.25), "TCAGTT": (-2, 0.8), "AGACGT": (25, 0.5)}
UPSTREAM = ("GGGCGG", "CCAATC", "TGACGT", "GCGCAT")
DOWNSTREAM = ("GAAGAA", "ACGTGG", "CTGCTG", "GTAAGT")
MUTATED, JITTER = 0.15, 2
#: words per window with a start, and the share of them that other windows have
UP, DOWN, OTHERS = 7.5, 6.2, 0.25
WAVE, PERIOD = 0.04, 60.0

#: twist in degrees and stacking energy in kcal/mol of two neighbouring bases; that of TT is that of AA
TWIST = {
    "AA": 35.5, "AC": 33.1, "AG": 30.6, "AT": 31.6, "CA": 37.7,
    "CC": 35.3, "CG": 31.3, "GA": 39.6, "GC": 38.4, "TA": 43.2,
}  # fmt: skip
ENERGY = {
    "AA": -1.00, "AC": -1.44, "AG": -1.28, "AT": -0.88, "CA": -1.45,
    "CC": -1.84, "CG": -2.17, "GA": -1.30, "GC": -2.24, "TA": -0.58,
}  # fmt: skip
SMOOTH, STEP = 10, 5
AROUND = slice(START - 33, START + 35)
#: where angles and energies are taken
FAR, NEAR = slice(START - 115, START - 55), slice(START - 100, START + 100)


class Task(NamedTuple):
    """Kernels of training, validation and test windows with the training windows, and labels."""

    kernels: tuple[KernelStack, KernelStack, KernelStack]
    y: tuple[np.ndarray, np.ndarray, np.ndarray]


def windows(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Windows as numbers 0 to 3 of A, C, G, T, and whether they hold a start (+1) or not (-1)."""
    y = np.where(np.arange(n) % 2, -1, 1)
    strength = rng.beta(12.0, 14.0, n)[:, None]  # the share of G and C
    places = np.arange(LENGTH) - START
    wave = WAVE * np.cos(2.0 * np.pi * places / PERIOD)
    strong = rng.random((n, LENGTH)) < np.clip(strength + np.where(y[:, None] > 0, wave, 0.0), 0.0, 1.0)
    either = rng.integers(0, 2, (n, LENGTH))
    codes = np.where(strong, 1 + either, 3 * either)  # C or G, else A or T
    for window, label in zip(codes, y, strict=True):
        share = 1.0 if label > 0 else OTHERS
        plant_words(window, UPSTREAM, slice(0, START), UP * share, rng)
        plant_words(window, DOWNSTREAM, slice(START, LENGTH), DOWN * share, rng)
        if label > 0:
            plant_signal(window, rng)
    return codes, y


def plant(window: np.ndarray, word: str, place: int, rng: np.random.Generator) -> None:
    """Write a word, some of its letters at random."""
    letters = np.searchsorted(LETTERS, list(word))
    changed = rng.random(len(word)) < MUTATED
    window[place : place + len(word)] = np.where(changed, rng.integers(0, 4, len(word)), letters)


def plant_words(
    window: np.ndarray, words: tuple[str, ...], part: slice, rate: float, rng: np.random.Generator
) -> None:
    """Words anywhere in a part of the window, as many as a Poisson variable says."""
    for _ in range(rng.poisson(rate)):
        word = words[rng.integers(len(words))]
        plant(window, word, int(rng.integers(part.start, part.stop - len(word))), rng)


def plant_signal(window: np.ndarray, rng: np.random.Generator) -> None:
    """Words at their places around the start."""
    for word, (place, share) in SIGNAL.items():
        if rng.random() < share:
            plant(window, word, START + place + int(rng.integers(-JITTER, JITTER + 1)), rng)


def structure(codes: np.ndarray, values: dict[str, float], part: slice) -> np.ndarray:
    """A property of neighbouring bases along a part, averaged over SMOOTH and taken at every STEP."""
    opposite = str.maketrans("ACGT", "TGCA")
    names = ["".join(pair) for pair in product("ACGT", repeat=2)]
    by_code = np.array([values.get(name, values.get(name.translate(opposite)[::-1])) for name in names])
    along = by_code[4 * codes[:, :-1] + codes[:, 1:]][:, part]
    sums = np.cumsum(np.pad(along, ((0, 0), (1, 0))), axis=1)
    return (sums[:, SMOOTH:] - sums[:, :-SMOOTH])[:, ::STEP] / SMOOTH


def task(n: int, seed: int) -> Task:
    """One draw of windows and its kernels."""
    rng = np.random.default_rng([n, seed])
    sizes = (n, N_VALIDATION, N_TEST)
    drawn = [windows(size, rng) for size in sizes]
    codes = np.concatenate([one for one, _ in drawn])
    strings = ["".join(letters) for letters in LETTERS[codes]]
    parts = {
        "signal": (WeightedDegree(degree=6, shift=2), [string[AROUND] for string in strings]),
        "promoter": (Spectrum(k=4), [string[:START] for string in strings]),
        "first exon": (Spectrum(k=4), [string[START:] for string in strings]),
        "angles": (Linear(), centred(structure(codes, TWIST, FAR), n)),
        "energies": (Linear(), centred(structure(codes, ENERGY, NEAR), n)),
    }
    matrices = {name: spherical(kernel, X, n) for name, (kernel, X) in parts.items()}
    ends = np.cumsum(sizes)
    rows = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    stacks = [KernelStack([K[part] for K in matrices.values()], list(matrices)) for part in rows]
    first, second, third = stacks
    return Task((first, second, third), (drawn[0][1], drawn[1][1], drawn[2][1]))


def centred(X: np.ndarray, n: int) -> np.ndarray:
    """About the mean of the first n rows."""
    return X - X[:n].mean(axis=0)


def spherical(kernel: Kernel, X: Any, n: int) -> np.ndarray:
    """Cosines of all rows with the first n."""
    length = np.sqrt(kernel.diag(X))
    return kernel(X, X[:n]) / np.outer(length, length[:n])


def run(n: int, seed: int) -> list[dict[str, Any]]:
    """All norms and all single kernels on one draw."""
    one = task(n, seed)
    rows = [{"method": name, **fitted(one, p)} for name, p in NORMS.items()]
    rows += [{"method": name, **fitted(one, np.inf, m)} for m, name in enumerate(SINGLES)]
    return [{**row, **alignments(one.kernels[0])} if row["method"] == SUM else row for row in rows]


def fitted(one: Task, p: float, only: int | None = None) -> dict[str, Any]:
    """Test AUC at the C of best validation AUC, and the weights; of one kernel where `only` says which."""
    stacks = one.kernels if only is None else [KernelStack([stack.matrix(only)]) for stack in one.kernels]
    train, valid, test = stacks
    best = (-1.0, None, 0.0)
    for C in COSTS:
        model = kw.MKLClassifier(
            "precomputed", regularizer=kw.LpNorm(p), C=float(C), normalize=None, tol=1e-3
        ).fit(train, one.y[0])
        auc = roc_auc_score(one.y[1], model.decision_function(valid))
        if auc > best[0]:
            best = (float(auc), model, float(C))
    _, model, C = best
    found = {"auc": 100.0 * roc_auc_score(one.y[2], model.decision_function(test)), "C": C}
    if only is None:
        shares = np.ravel(model.weights_) / np.sum(model.weights_)
        found |= {f"weight {name}": float(share) for name, share in zip(SINGLES, shares, strict=True)}
    return found


def alignments(stack: KernelStack) -> dict[str, float]:
    """<K_i, K_j> / (|K_i| |K_j|) of all pairs."""
    Ks = [stack.matrix(m) for m in range(stack.shape[2])]
    names = list(SINGLES)
    return {
        f"alignment {names[i]}, {names[j]}": float(
            np.vdot(Ks[i], Ks[j]) / np.linalg.norm(Ks[i]) / np.linalg.norm(Ks[j])
        )
        for i in range(len(names))
        for j in range(i)
    }


def cells(mode: Mode) -> list[dict[str, Any]]:
    """Sizes, draw by draw; half as many draws of the largest."""
    sizes, count = mode.pick(quick=(100, 200), full=SIZES), mode.count(quick=2, full=10)
    return [
        {"n": n, "seed": seed}
        for seed in range(count)
        for n in sizes
        if n < SIZES[-1] or seed < max(count // 2, 1)
    ]


def summarise(rows: list[dict[str, Any]]) -> Summary:
    """What the paper says of its figures, size by size, and what was set."""
    sizes = sorted({row["n"] for row in rows})
    lines = [line for n in sizes for line in claims(rows, n)]
    lines += [*kept(rows, sizes[-1]), aligned(rows, sizes[-1])]
    tables = [
        table("AUC in % on the stand-in", rows, "auc", "method", "n"),
        *(
            table(f"Share of the weight of kernel: {name}", rows, f"weight {name}", "method", "n")
            for name in SINGLES
        ),
    ]
    return Summary(lines, tables, [reached(rows, sizes[-1])])


def claims(rows: list[dict[str, Any]], n: int) -> list[Line]:
    """At one size: the plain sum above p = 1, p = 2 above the plain sum and above every other norm."""
    found = {norm: by(rows, "auc", "seed", n=n, method=norm) for norm in NORMS}
    rivals = {norm: values for norm, values in found.items() if norm != BEST}
    what = f"gene starts (simulated), n = {n}:"
    return [
        ordering(
            f"{what} the plain sum is above p = 1",
            found[SUM],
            found[SPARSE],
            paper="significantly, at every size",
            unit=" %",
        ),
        ordering(
            f"{what} p = 2 is above the plain sum",
            found[BEST],
            found[SUM],
            paper="significantly, up to 20,000 samples",
            unit=" %",
        ),
        all_above(
            f"{what} p = 2 is above every other norm",
            {BEST: found[BEST]},
            rivals,
            paper="performs best",
            unit=" %",
        ),
    ]


def kept(rows: list[dict[str, Any]], n: int) -> list[Line]:
    """p = 1 has more weight on its first kernel than p = 2; p = 2 more on each strong than each weak one."""
    first = {
        norm: {
            row["seed"]: max(row[f"weight {name}"] for name in SINGLES)
            for row in rows
            if row["n"] == n and row["method"] == norm
        }
        for norm in (SPARSE, BEST)
    }
    shares = {name: by(rows, f"weight {name}", "seed", n=n, method=BEST) for name in SINGLES}
    where = f"gene starts (simulated), n = {n}:"
    return [
        ordering(
            f"{where} p = 1 gives its first kernel a larger share of the weight than p = 2",
            first[SPARSE],
            first[BEST],
            paper="p = 1 focuses on the best kernel",
        ),
        all_above(
            f"{where} p = 2 gives each strong kernel more weight than each weak one",
            {name: shares[name] for name in STRONG},
            {name: values for name, values in shares.items() if name not in STRONG},
            paper="most to the weighted degree and the two spectrum kernels",
        ),
    ]


def aligned(rows: list[dict[str, Any]], n: int) -> Line:
    """The three strong kernels are more alike than the energies are to any of them."""
    names = dict.fromkeys(key for row in rows for key in row if key.startswith("alignment "))
    found = {name.removeprefix("alignment "): by(rows, name, "seed", n=n, method=SUM) for name in names}
    inside = {key: value for key, value in found.items() if all(k in STRONG for k in key.split(", "))}
    energies = {key: value for key, value in found.items() if "energies" in key and "angles" not in key}
    what = (
        f"gene starts (simulated), n = {n}: strong kernels are aligned more with one another than with the "
        "energies"
    )
    return all_above(what, inside, energies, paper="strong ones highly aligned, energies little")


def reached(rows: list[dict[str, Any]], n: int) -> str:
    """What the single kernels reach, beside the figures they were set to."""
    text = ", ".join(
        f"{name} {mean(select(rows, 'auc', n=n, method=name)):.1f} (the paper: {100 * auc:.0f})"
        for name, auc in SINGLES.items()
    )
    return f"AUC in % of single kernels at n = {n}, which the strengths were set to at n = 1,600: {text}."


def draw(rows: list[dict[str, Any]]) -> Any:
    """AUC against n, and weights at the largest n, as in the paper."""
    import matplotlib.pyplot as plt

    sizes = sorted({row["n"] for row in rows})
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
    for norm in NORMS:
        values = [select(rows, "auc", n=n, method=norm) for n in sizes]
        spread = [np.nan_to_num(standard_error(found)) for found in values]
        left.errorbar(sizes, [mean(found) for found in values], spread, fmt="o-", markersize=3, label=norm)
    left.set(xscale="log", xlabel="training windows", ylabel="AUC (%), simulated", xticks=sizes)
    left.set_xticks(sizes, [str(n) for n in sizes])
    left.minorticks_off()
    left.legend(fontsize=8)
    for k, norm in enumerate(NORMS):
        shares = [mean(select(rows, f"weight {name}", n=sizes[-1], method=norm)) for name in SINGLES]
        right.bar(np.arange(len(SINGLES)) + 0.16 * (k - 2), shares, width=0.16, label=norm)
    right.set(ylabel=f"share of the weight, n = {sizes[-1]}", xticks=range(len(SINGLES)))
    right.set_xticklabels(list(SINGLES), fontsize=8)
    return figure


EXPERIMENT = Experiment(
    title="gene starts (stand-in: simulated data)",
    paper="Kloft, Brefeld, Sonnenburg & Zien (2011), JMLR 12, Figures 4 and 5",
    cells=cells,
    run=run,
    summarise=summarise,
    draw=draw,
)
