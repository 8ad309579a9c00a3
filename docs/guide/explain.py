"""Draw the picture of the page "Why a sample has its value": two ways to read attributions wrongly.

    python docs/guide/explain.py

writes docs/images/explain_misleads.png, from simulated data. Needs matplotlib.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import kernelweave as kw
from kernelweave.kernels import RBF, Linear

IMAGES = Path(__file__).resolve().parents[1] / "images"
#: colours of Okabe and Ito, told apart by every kind of colour vision
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#E69F00", "#009E73", "#777777"
N = 300
NAMES = ["cause", "copy", "noise"]
CORRELATIONS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)


def copied(correlation: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A cause, a column that goes with it and has no effect, and noise; the target is the cause and noise."""
    rng = np.random.default_rng(seed)
    cause, other, noise = rng.normal(size=(3, N))
    copy = correlation * cause + np.sqrt(1.0 - correlation**2) * other
    return np.column_stack([cause, copy, noise]), cause + 0.5 * rng.normal(size=N)


def sizes(correlation: float) -> np.ndarray:
    """Mean size of the attributions of cause, copy and noise, and of cause and copy together."""
    X, y = copied(correlation)
    values = kw.explain(kw.MKLRegressor(RBF(), C=1.0).fit(X, y), X, X[::6]).values
    return np.append(np.abs(values).mean(axis=0), np.abs(values[:, 0] + values[:, 1]).mean())


def effects(correlation: float) -> np.ndarray:
    """How much the target would change if a column were set to that of another sample, and no other was."""
    X, _ = copied(correlation)
    return np.array([np.abs(X[:, 0] - X[::6, 0].mean()).mean(), 0.0, 0.0])


def patients() -> tuple[Any, np.ndarray]:
    """A model of blood pressure by age, weight and dose, and its patients: doses are given to the old."""
    rng = np.random.default_rng(0)
    age = rng.uniform(30, 85, N)
    weight = 75 + 12 * rng.normal(size=N)
    dose = np.clip(2.0 + 0.12 * (age - 57) + rng.normal(size=N), 0.0, None)
    pressure = 90 + 0.7 * age + 0.3 * (weight - 75) - 4.0 * dose + 4 * rng.normal(size=N)
    X = np.column_stack([age, weight, dose])
    model = kw.MKLRegressor({"line": Linear(standardize=True), "smooth": RBF(standardize=True)}, C=10.0)
    return model.fit(X, pressure), X


def compared() -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Attributions of one patient against three backgrounds, and the patient."""
    model, X = patients()
    patient = np.array([[62.0, 75.0, 4.0]])
    old, young = X[X[:, 0] > 70], X[X[:, 0] < 50]
    backgrounds = {"all patients": X, "those over 70": old, "those under 50": young}
    return {name: kw.explain(model, patient, rows).values[0] for name, rows in backgrounds.items()}, patient[
        0
    ]


def draw(target: Path) -> None:
    """Three panels: credit that a copy has, how it comes, and one patient against three backgrounds."""
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11.5, 3.6), layout="constrained")
    places = np.arange(3)
    left.barh(places - 0.2, sizes(0.95)[:3], 0.38, color=BLUE, label="mean |attribution|")
    left.barh(places + 0.2, effects(0.95), 0.38, color=ORANGE, label="mean effect on the target")
    left.set_yticks(places, NAMES)
    left.invert_yaxis()
    left.set_title("A copy has no effect,\nand has credit", loc="left", fontsize=10)
    left.legend(frameon=False, fontsize=8, loc="lower right")
    curves = np.array([sizes(correlation) for correlation in CORRELATIONS])
    for k, (name, colour, style) in enumerate(
        zip([*NAMES, "cause and copy"], (BLUE, ORANGE, GREY, GREEN), ("o-", "s-", "^-", "D--"), strict=True)
    ):
        middle.plot(CORRELATIONS, curves[:, k], style, color=colour, markersize=4, label=name)
    middle.set_xlabel("correlation of cause and copy")
    middle.set_ylabel("mean |attribution|")
    middle.set_ylim(0.0)
    middle.set_title("The more alike, the more they share;\ntheir sum stays", loc="left", fontsize=10)
    middle.legend(frameon=False, fontsize=8, loc="center left")
    found, patient = compared()
    for k, ((name, values), colour) in enumerate(zip(found.items(), (BLUE, ORANGE, GREEN), strict=True)):
        right.barh(places + 0.26 * (k - 1), values, 0.24, color=colour, label=name)
    right.set_yticks(places, [f"age {patient[0]:.0f}", f"weight {patient[1]:.0f}", f"dose {patient[2]:.0f}"])
    right.invert_yaxis()
    right.axvline(0.0, color="0.3", linewidth=0.8)
    right.set_xlabel("what it adds to the pressure")
    right.set_title(
        "One patient, three backgrounds:\nthe sign of an attribution is theirs", loc="left", fontsize=10
    )
    right.legend(frameon=False, fontsize=8)
    for ax in (left, middle, right):
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(target, dpi=140)
    plt.close(figure)


if __name__ == "__main__":
    draw(IMAGES / "explain_misleads.png")
    print(f"written: {IMAGES / 'explain_misleads.png'}")
