"""Draw the picture, and print the table, of the page "Linear and Gaussian kernels together".

    python docs/guide/mixing_kernels.py

writes docs/images/mixing_kernels.png. Needs matplotlib, and the data sets corn_nir, gasoline and tecator of
`kernelweave.datasets`; without one of them it says so and draws nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave import datasets
from kernelweave.kernels import RBF, Linear, bands, resolve_normalization

IMAGES = Path(__file__).resolve().parents[1] / "images"
#: colours of Okabe and Ito, told apart by every kind of colour vision
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "#777777"
COSTS = 10.0 ** np.arange(-3, 7)
N_BANDS, WIDTHS = 5, (0.1, 1.0, 10.0)
SETS = {"corn, protein": "corn_nir", "gasoline, octane": "gasoline", "tecator, fat": "tecator"}
MIXED = [Linear(), *(RBF(factor=width) for width in WIDTHS)]


def spectra(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Spectra and target in double precision, at most 150 samples."""
    data = datasets.load(SETS[name])
    X = data.views["m5"] if "views" in data else data.X
    return np.asarray(X, dtype=float)[:150], np.asarray(data.y, dtype=float)[:150]


def held_out(kernels: Any, normalize: str, X: np.ndarray, y: np.ndarray) -> list[float]:
    """R2 of predictions for held-out fifths, for every C."""
    found = []
    for C in COSTS:
        machine = kw.MKLRegressor(bands(N_BANDS, kernels), C=C, normalize=normalize, max_iter=200)
        machine.set_params(regularizer=kw.LpNorm(p=1))
        model = TransformedTargetRegressor(
            make_pipeline(StandardScaler(), machine), transformer=StandardScaler()
        )
        f = cross_val_predict(model, X, y, cv=KFold(5, shuffle=True, random_state=0))
        found.append(1.0 - float(np.mean((f - y) ** 2) / y.var()))
    return found


def eigenvalues(kernel: Any, normalize: str, X: np.ndarray) -> np.ndarray:
    """Of the normalised kernel on all samples, centred, the largest first."""
    K = kernel.fit(X)(X)
    centred = resolve_normalization("center").fit(K).train(K)
    return resolve_normalization(normalize).fit(K).scale_ * np.linalg.eigvalsh(centred)[::-1]


def draw(curves: dict[tuple[str, str], list[float]], X: np.ndarray) -> None:
    """Eigenvalues under both normalisations, and R2 against C."""
    figure, axes = plt.subplots(1, 3, figsize=(11.0, 3.4), layout="constrained")
    band = StandardScaler().fit_transform(X)[:, : X.shape[1] // N_BANDS]
    shown = [("linear", Linear(), BLUE, "-"), ("wide", RBF(factor=0.1), GREEN, "--")]
    shown += [("narrow", RBF(factor=10.0), ORANGE, ":")]
    for ax, normalize in zip(axes, ("variance", "dimension"), strict=False):
        for label, kernel, colour, style in shown:
            ax.plot(
                np.arange(1, 31), eigenvalues(kernel, normalize, band)[:30], style, color=colour, label=label
            )
        ax.axhline(1.0, color=GREY, lw=0.8)
        ax.set(yscale="log", ylim=(1e-6, 1e6), xlabel="direction", title=f'normalize="{normalize}"')
    axes[0].set_ylabel("eigenvalue")
    axes[0].legend(frameon=False, fontsize=9)
    axes[0].text(30, 1.4, "noise at C = 1", ha="right", fontsize=8, color=GREY)
    styles = {("variance", "linear"): (BLUE, "--"), ("variance", "mixed"): (ORANGE, "-")}
    styles |= {("dimension", "mixed"): (GREEN, "-")}
    for (normalize, kind), (colour, style) in styles.items():
        axes[2].plot(COSTS, curves[normalize, kind], style, color=colour, label=f"{kind}, {normalize}")
    axes[2].set(
        xscale="log", ylim=(-0.25, 1.02), xlabel="C", ylabel="R2 on held-out samples", title="corn, protein"
    )
    axes[2].legend(frameon=False, fontsize=9, loc="center right", bbox_to_anchor=(1.0, 0.42))
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(IMAGES / "mixing_kernels.png", dpi=130)


def main() -> None:
    """Print the best R2 over C of every set, and draw the first."""
    absent = [file for file in SETS.values() if datasets.find(file) is None]
    if absent:
        print(f"nothing is drawn: {', '.join(absent)} not found; see kernelweave.datasets.")
        return
    data = {name: spectra(name) for name in SETS}
    kinds = {"linear": Linear(), "mixed": MIXED}
    for name, (X, y) in data.items():
        curves = {
            (rule, k): held_out(kinds[k], rule, X, y) for rule in ("variance", "dimension") for k in kinds
        }
        for key, values in curves.items():
            print(f"{name:18s} {key[1]:7s} {key[0]:10s} best {max(values):6.3f}  {np.round(values, 2)}")
        if name == next(iter(data)):
            draw(curves, X)


if __name__ == "__main__":
    main()
