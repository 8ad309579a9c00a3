"""Exact attributions against sampled ones: kw.explain, and shap's explainers where shap is installed.

* Breast cancer: 30 features, 3 kernels (Gaussian, Laplacian, polynomial of degree 2), 50 background samples.
  Seconds of the processor per sample, and the largest difference of `shap.KernelExplainer` (its default
  number of subsets, all features) from the exact values, as a share of the largest of these. Promised: at
  least 100 times as fast.
* Eight of these features: the largest difference from `shap.explainers.Exact`, which goes through all
  subsets. Promised: 1e-8.
* Wide: 1,000 samples, 1,000 features, 500 support vectors, a Gaussian kernel, one background sample.
  Wall-clock and processor seconds, and how far attributions are from adding up. Promised: under a minute on
  two cores, and 1e-8.
* With ``--device``: kernels of every kind of game, 1,000 samples (``--samples``), 500 support vectors:
  seconds of the device, those of the host from some of the samples, how far apart values are, and memory.

    python benchmarks/bench_explain.py [cancer] [exact] [wide] [--device cuda [--samples 1000]]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave._backend import resolve_device
from kernelweave.gram.games import Expansion
from kernelweave.kernels import RBF, HistogramIntersection, Laplacian, Linear, Polynomial, Spectrum

BACKGROUND, SAMPLED, ROUNDS = 50, 2, 3


def timed(run: Callable[[], Any]) -> tuple[float, float, Any]:
    """Seconds of the processor and of the clock, and what is found."""
    start, clock = time.process_time(), time.perf_counter()
    found = run()
    return time.process_time() - start, time.perf_counter() - clock, found


def cancer(features: int = 30) -> tuple[Any, np.ndarray]:
    """A fitted classifier, and its samples."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)[:, :features]
    kernels = {"gauss": RBF(), "laplace": Laplacian(), "square": Polynomial(2, gamma=1.0 / features)}
    return kw.MKLClassifier(kernels, regularizer=kw.LpNorm(2)).fit(X, y), X


def against_sampling() -> None:
    """Seconds per sample of both, and what sampling misses."""
    import shap

    model, X = cancer()
    background, rows = X[:: len(X) // BACKGROUND][:BACKGROUND], X[:SAMPLED]
    kw.explain(model, rows, background)  # compiles
    own = min(timed(lambda: kw.explain(model, X[:100], background))[0] for _ in range(ROUNDS)) / 100
    exact = kw.explain(model, rows, background).values
    sampler = shap.KernelExplainer(model.decision_function, background)
    theirs, _, values = timed(lambda: sampler.shap_values(rows, silent=True, l1_reg=False))
    theirs /= SAMPLED
    missed = np.abs(values - exact).max() / np.abs(exact).max()
    gap = np.abs(
        exact.sum(axis=1) + kw.explain(model, rows, background).base_value - model.decision_function(rows)
    )
    print(
        f"breast cancer, {len(model.model_.alpha)} support vectors: kernelweave {1e3 * own:.1f} ms a sample,"
    )
    print(f"    KernelExplainer {1e3 * theirs:.0f} ms, {theirs / own:.0f} times as long (promised: 100);")
    print(f"    it is off by {missed:.1e} of the largest value; ours add up to {gap.max():.0e}")


def against_all_subsets() -> None:
    """The difference from shap's explainer that goes through all subsets."""
    import shap

    model, X = cancer(8)
    background, rows = X[:20], X[20:23]
    masker = shap.maskers.Independent(background, max_samples=len(background))
    theirs = shap.explainers.Exact(model.decision_function, masker)(rows, silent=True).values
    difference = np.abs(kw.explain(model, rows, background).values - theirs).max()
    print(f"8 features: off shap.explainers.Exact by {difference:.0e}")


def wide() -> None:
    """Seconds of many samples, features and support vectors."""
    rng = np.random.default_rng(0)
    Z, X = rng.normal(size=(500, 1000)), rng.normal(size=(1000, 1000))
    model = kw.MKLRegressor(RBF(), loss="squared").fit(Z, Z[:, 0] * Z[:, 1])
    kw.explain(model, X[:2], Z[:1])  # compiles
    processor, clock, found = timed(lambda: kw.explain(model, X, Z[:1]))
    gap = np.abs(found.values.sum(axis=1) + found.base_value - model.predict(X)).max()
    count = len(model.model_.alpha)
    print(f"1,000 samples x 1,000 features x {count} support vectors: {clock:.1f} s of the clock,")
    print(f"    {processor:.1f} s of the processor (promised: 60); they add up to {gap:.0e}")


CASES = {"cancer": against_sampling, "exact": against_all_subsets, "wide": wide}

#: kernel, features, background samples
GAMES = {
    "Gaussian": (RBF(), 1000, 1),
    "Gaussian, 20 background samples": (RBF(), 1000, 20),
    "Gaussian, narrow": (RBF(factor=20.0), 1000, 1),
    "polynomial, degree 3": (Polynomial(3, gamma=0.001), 1000, 1),
    "Gaussian times linear": (RBF() * Linear(), 200, 1),
    "histogram intersection": (HistogramIntersection(), 1000, 1),
}


def strings(rng: np.random.Generator, n: int) -> np.ndarray:
    """Random DNA of 200 letters."""
    return np.array(["".join(row) for row in rng.choice(list("ACGT"), size=(n, 200))], dtype=object)[:, None]


def on_device(name: str, samples: int) -> None:
    """Seconds of every kind of game on the device and on the host."""
    import torch
    from bench_gpu import hardware

    print(hardware(name))
    rng, device = np.random.default_rng(0), resolve_device(name)
    games = {
        label: (kernel, rng.gamma(1.0, size=(samples, F)), rng.gamma(1.0, size=(500, F)), B)
        for label, (kernel, F, B) in GAMES.items()
    }
    games["strings, substrings of 3"] = (Spectrum(3), strings(rng, samples), strings(rng, 500), 1)
    for label, (kernel, X, Z, B) in games.items():
        game, weight = Expansion(kernel.fit(Z), Z, rng.normal(size=(500, 1))), np.full(B, 1.0 / B)
        game.attribution(X[:2], Z[:B], weight, device)
        game.attribution(X[:2], Z[:B], weight)
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        _, there, found = timed(lambda g=game, x=X, b=Z[:B], w=weight: g.attribution(x, b, w, device))
        processor, _, own = timed(lambda g=game, x=X[:20], b=Z[:B], w=weight: g.attribution(x, b, w))
        apart = np.abs(found.values[:, :20] - own.values).max() / np.abs(own.values).max()
        memory = torch.cuda.max_memory_allocated() / 1e9 if device.type == "cuda" else 0.0
        here = samples / len(X[:20]) * processor
        print(f"{label:34} {there:7.2f} s; one core of the host {here:6.1f} s;", end=" ")
        print(f"{apart:.0e} apart, {memory:.1f} GB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], help="all by default; none with --device")
    parser.add_argument("--device")
    parser.add_argument("--samples", type=int, default=1000, help="of --device")
    given = parser.parse_args()
    for case in given.cases or ([] if given.device else CASES):
        CASES[case]()
    if given.device:
        on_device(given.device, given.samples)
