"""Table 2 of Kloft et al. (2011) on a stand-in: edges of a simulated network from three views of its nodes.

Stand-in: simulated data. The paper's kernels of 668 yeast enzymes (expression, localization, phylogenetic
profile) and their 2,782 relations are not available; nothing here says how good a norm is on real networks.

The network has 200 nodes in the plane and edges between near ones, about 8 per node as in the paper. Each
view sees its own copy of the network: some edges are missing, and as many are wrong. Features of the nodes
are smooth on that copy (normal with the covariance exp(-beta L), L its normalised Laplacian) up to noise.
EXP: 40 features, Gaussian kernel. LOC: 10 sparse bits, linear kernel. PHY: 60 bits; the nodes with most bits
in common are neighbours, and the kernel is the diffusion kernel exp(-beta L) of that graph. The noise was set
so that single kernels reach about the AUC of the paper (71.7, 58.4, 73.4 %), before any norm was tried;
nothing else was set.

As in the paper there are 5 folds of nodes. Every training node with more than two partners has a machine that
tells its partners among the training nodes from the others (hinge loss) and ranks the test nodes; here 80 of
the 160 training nodes have one, in the paper all do. The AUC is averaged over the machines whose node has a
partner among the test nodes. C is chosen from 0.1, 1 and 10 by the AUC of the machines of 25 nodes, trained
on three quarters of the training nodes. Norms are p = 1, 4/3, 2, 4, 8, 10 and the plain sum, on the three
kernels and on nine: the three with their sums and products in pairs. A repetition is one network, with means
over its folds.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from reproduce import (
    Experiment,
    Line,
    Mode,
    Summary,
    alike,
    by,
    mean,
    ordering,
    select,
    standard_error,
    table,
)
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import euclidean_distances

import kernelweave as kw
from kernelweave.gram import DenseGram
from kernelweave.losses import Hinge
from kernelweave.solvers import Problem
from kernelweave.solvers.multiple import choose_solver

N_NODES, DEGREE, FOLDS, FEWEST = 200, 8.0, 5, 3
COSTS, N_TUNED, N_MACHINES, TOL = (0.1, 1.0, 10.0), 25, 80, 1e-3
#: view -> features, share of true edges it sees, noise of the features
VIEWS = {"EXP": (40, 0.6, 0.7), "LOC": (10, 0.6, 0.35), "PHY": (60, 0.6, 0.15)}
BETA, NEIGHBOURS = 3.0, 8
NORMS = {
    "p = 1": 1.0,
    "p = 4/3": 4 / 3,
    "p = 2": 2.0,
    "p = 4": 4.0,
    "p = 8": 8.0,
    "p = 10": 10.0,
    "plain sum": np.inf,
}
SUM, MORE = "plain sum", "nine kernels, "
#: AUC in % of the paper's Table 2
PAPER = {
    "EXP": 71.69,
    "LOC": 58.35,
    "PHY": 73.35,
    "plain sum": 82.94,
    "p = 1": 75.08,
    "p = 4/3": 78.14,
    "p = 2": 80.12,
    "p = 4": 81.58,
    "p = 8": 81.99,
    "p = 10": 82.02,
    "nine kernels, p = 1": 79.05,
    "nine kernels, p = 4/3": 80.92,
    "nine kernels, p = 2": 81.95,
    "nine kernels, p = 4": 83.13,
}


def network(rng: np.random.Generator) -> np.ndarray:
    """Adjacency of nodes in the plane: an edge of length d with probability exp(-(d / r)^2)."""
    points = rng.random((N_NODES, 2))
    radius = np.sqrt(DEGREE / (np.pi * N_NODES))
    near = np.exp(-euclidean_distances(points, squared=True) / radius**2)
    return symmetric(rng.random((N_NODES, N_NODES)) < near)


def symmetric(A: np.ndarray) -> np.ndarray:
    """The upper triangle, mirrored."""
    upper = np.triu(A, 1)
    return (upper | upper.T).astype(float)


def seen(A: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """A copy with a share of the edges, and wrong ones in place of the others."""
    n = len(A)
    kept = (A > 0) & (rng.random((n, n)) < share)
    wrong = (1.0 - share) * A.sum() / (n * (n - 1.0))
    return symmetric(kept | (rng.random((n, n)) < wrong))


def diffusion(A: np.ndarray) -> np.ndarray:
    """exp(-beta L) with L = I - D^-1/2 A D^-1/2 (Kondor & Lafferty 2002, normalised)."""
    scale = 1.0 / np.sqrt(np.maximum(A.sum(axis=1), 1.0))
    values, vectors = np.linalg.eigh(np.eye(len(A)) - scale[:, None] * A * scale)
    return (vectors * np.exp(-BETA * values)) @ vectors.T


def features(A: np.ndarray, count: int, noise: float, rng: np.random.Generator) -> np.ndarray:
    """Columns with covariance exp(-beta L) scaled to variance 1, plus noise."""
    H = diffusion(A)
    H = H / np.sqrt(np.outer(np.diag(H), np.diag(H)))
    values, vectors = np.linalg.eigh(H)
    smooth = (vectors * np.sqrt(np.maximum(values, 0.0))) @ rng.standard_normal((len(A), count))
    return smooth + noise * rng.standard_normal(smooth.shape)


def neighbours(bits: np.ndarray) -> np.ndarray:
    """The graph of nodes with most bits in common."""
    alike = -euclidean_distances(bits, squared=True)
    np.fill_diagonal(alike, -np.inf)
    nearest = np.argsort(-alike, axis=1, kind="stable")[:, :NEIGHBOURS]
    A = np.zeros(alike.shape, dtype=bool)
    np.put_along_axis(A, nearest, True, axis=1)
    return (A | A.T).astype(float)


@lru_cache(maxsize=1)
def views(seed: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """A network, and the three kernels of its nodes."""
    rng = np.random.default_rng(seed)
    A = network(rng)
    X = {
        name: features(seen(A, share, rng), count, noise, rng)
        for name, (count, share, noise) in VIEWS.items()
    }
    distances = euclidean_distances(X["EXP"], squared=True)
    places = (X["LOC"] > np.quantile(X["LOC"], 0.8, axis=0)).astype(float)
    kernels = {
        "EXP": np.exp(-distances / np.median(distances)),
        "LOC": places @ places.T,
        "PHY": diffusion(neighbours((X["PHY"] > 0).astype(float))),
    }
    return A, kernels


def recombined(kernels: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Three kernels of variance 1, their sums and their products in pairs."""
    scaled = [K / (np.diag(K).mean() - K.mean()) for K in kernels.values()]
    pairs = list(combinations(scaled, 2))
    return [*scaled, *(K + L for K, L in pairs), *(K * L for K, L in pairs)]


def methods(kernels: dict[str, np.ndarray]) -> dict[str, tuple[list[np.ndarray], float]]:
    """Method -> its kernels and its norm."""
    three, nine = list(kernels.values()), recombined(kernels)
    found = {name: ([K], np.inf) for name, K in kernels.items()}
    found |= {norm: (three, p) for norm, p in NORMS.items()}
    return found | {f"{MORE}{norm}": (nine, NORMS[norm]) for norm in ("p = 1", "p = 4/3", "p = 2", "p = 4")}


def run(seed: int, fold: int) -> list[dict[str, Any]]:
    """All methods on one fold of one network."""
    A, kernels = views(seed)
    order = np.random.default_rng([seed, 1]).permutation(N_NODES)
    test = np.sort(order[fold::FOLDS])
    train = np.setdiff1d(order, test)
    nodes = np.random.default_rng([seed, fold, 3]).permutation(train)[:N_MACHINES]
    rows = []
    for method, (Ks, p) in methods(kernels).items():
        C = tuned(Ks, A, p, train, np.random.default_rng([seed, fold, 2]))
        values, failed = ranked(Ks, A, p, C, train, test, nodes)
        found = {"method": method, "auc": mean(values), "machines": len(values), "C": C, "failed": failed}
        rows.append(found | (aligned(kernels) if method == SUM else {}))
    return rows


def tuned(
    Ks: list[np.ndarray], A: np.ndarray, p: float, train: np.ndarray, rng: np.random.Generator
) -> float:
    """The C that ranks a quarter of the training nodes best, for machines of some of the others."""
    mixed = rng.permutation(train)
    held, inside = np.sort(mixed[: len(train) // 4]), np.sort(mixed[len(train) // 4 :])
    some = rng.permutation(inside)[:N_TUNED]
    scores = [mean(ranked(Ks, A, p, C, inside, held, some)[0]) for C in COSTS]
    return COSTS[int(np.argmax(scores))]


def ranked(
    Ks: list[np.ndarray],
    A: np.ndarray,
    p: float,
    C: float,
    train: np.ndarray,
    test: np.ndarray,
    nodes: np.ndarray,
) -> tuple[list[float], int]:
    """AUC in % of the machine of each node with partners enough, and how many did not converge."""
    inside = [np.ascontiguousarray(K[np.ix_(train, train)]) for K in Ks]
    scales = np.array([1.0 / (np.diag(K).mean() - K.mean()) for K in inside])
    gram, regularizer = DenseGram(inside, scales), kw.LpNorm(p)
    outside = np.array([s * K[np.ix_(test, train)] for s, K in zip(scales, Ks, strict=True)])
    found, failed = [], 0
    for node in nodes:
        partners, wanted = A[node, train] > 0, A[node, test] > 0
        if partners.sum() < FEWEST or not wanted.any():
            continue
        problem = Problem(np.where(partners, 1.0, -1.0)[:, None], Hinge(), np.full((len(train), 1), C))
        result = choose_solver("auto", regularizer).solve(problem, gram, regularizer, TOL)
        values = np.einsum("m,mij,j->i", result.state.weights, outside, result.state.alpha[:, 0])
        found.append(100.0 * float(roc_auc_score(wanted, values)))
        failed += not result.converged
    return found, failed


def aligned(kernels: dict[str, np.ndarray]) -> dict[str, float]:
    """<K, L> / (|K| |L|) of centred kernels."""
    middle = {name: K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean() for name, K in kernels.items()}
    return {
        f"alignment {a}, {b}": float(
            np.vdot(middle[a], middle[b]) / np.linalg.norm(middle[a]) / np.linalg.norm(middle[b])
        )
        for a, b in combinations(kernels, 2)
    }


def cells(mode: Mode) -> list[dict[str, Any]]:
    """Folds, network by network."""
    folds = mode.pick(quick=1, full=FOLDS)
    return [
        {"seed": seed, "fold": fold} for seed in range(mode.count(quick=2, full=8)) for fold in range(folds)
    ]


def summarise(rows: list[dict[str, Any]]) -> Summary:
    """What the paper says of its table."""
    found = by_network(rows)
    lines = [above(found, SUM, other) for other in (*VIEWS, "p = 1", "p = 4/3", "p = 2", "p = 4")]
    lines += [equal(found, norm) for norm in ("p = 8", "p = 10")]
    lines += [above(found, f"{MORE}{norm}", norm) for norm in ("p = 1", "p = 4/3", "p = 2")]
    lines += [equal(found, f"{MORE}p = 4")]
    columns = [{**row, "source": "stand-in"} for row in found]
    columns += [{"method": name, "source": "the paper, yeast", "auc": auc} for name, auc in PAPER.items()]
    return Summary(lines, [table("AUC in %", columns, "auc", "method", "source")], [how_alike(rows)])


def by_network(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over folds."""
    kinds = dict.fromkeys((row["seed"], row["method"]) for row in rows)
    return [
        {"seed": seed, "method": method, "auc": mean(select(rows, "auc", seed=seed, method=method))}
        for seed, method in kinds
    ]


def above(rows: list[dict[str, Any]], first: str, second: str) -> Line:
    """Whether one method has the higher AUC, network by network."""
    better, worse = (by(rows, "auc", "seed", method=method) for method in (first, second))
    paper = f"{PAPER[first]:.1f} against {PAPER[second]:.1f}"
    return ordering(
        f"metabolic network (simulated): {first} is above {second}", better, worse, paper=paper, unit=" %"
    )


def equal(rows: list[dict[str, Any]], method: str) -> Line:
    """Whether a method and the plain sum perform the same."""
    values, plain = (by(rows, "auc", "seed", method=name) for name in (method, SUM))
    paper = f"{PAPER[method]:.1f} against {PAPER[SUM]:.1f}, not significant"
    return alike(
        f"metabolic network (simulated): {method} is as the {SUM}", values, plain, paper=paper, unit=" %"
    )


def how_alike(rows: list[dict[str, Any]]) -> str:
    """Alignments of the kernels, and what single kernels reach beside the figures they were set to."""
    names = dict.fromkeys(key for row in rows for key in row if key.startswith("alignment "))
    pairs = ", ".join(f"{name.removeprefix('alignment ')} {mean(select(rows, name)):.2f}" for name in names)
    singles = ", ".join(
        f"{name} {mean(select(rows, 'auc', method=name)):.1f} (the paper: {PAPER[name]:.1f})"
        for name in VIEWS
    )
    return f"Alignments of the centred kernels: {pairs}. AUC in % of single kernels: {singles}."


def draw(rows: list[dict[str, Any]]) -> Any:
    """AUC against the norm."""
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(6.5, 3.6), layout="constrained")
    found, present = by_network(rows), list(dict.fromkeys(row["method"] for row in rows))
    values = [select(found, "auc", method=method) for method in present]
    spread = [np.nan_to_num(standard_error(one)) for one in values]
    ax.errorbar(range(len(present)), [mean(one) for one in values], spread, fmt="o", label="simulated")
    ax.plot(range(len(present)), [PAPER[method] for method in present], "x", label="the paper, yeast")
    ax.set(ylabel="AUC (%)", xticks=range(len(present)))
    ax.set_xticklabels(present, rotation=45, ha="right", fontsize=8)
    ax.legend(fontsize=8)
    return figure


EXPERIMENT = Experiment(
    title="edges of a metabolic network (stand-in: simulated data)",
    paper="Kloft, Brefeld, Sonnenburg & Zien (2011), JMLR 12, Table 2",
    cells=cells,
    run=run,
    summarise=summarise,
    draw=draw,
)
