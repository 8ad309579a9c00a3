"""
What is normal: one class, several kernels
==========================================

``MKLOneClass`` learns the region where the training samples lie, with one weight per kernel, and flags what
lies outside. ``nu`` bounds the share of training samples left outside.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelweave as kw
from kernelweave.kernels import RBF

rng = np.random.default_rng(0)
angle = rng.uniform(0, 2 * np.pi, 300)
ring = np.column_stack([np.cos(angle), np.sin(angle)]) * (1 + 0.08 * rng.normal(size=(300, 1)))

model = kw.MKLOneClass([RBF(gamma=g) for g in (3.0, 10.0, 30.0)], nu=0.05).fit(ring)
axis = np.linspace(-1.9, 1.9, 120)
grid = np.stack(np.meshgrid(axis, axis), axis=-1)
score = model.decision_function(grid.reshape(-1, 2)).reshape(120, 120)

figure, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")
image = ax.contourf(axis, axis, score, levels=20, cmap="viridis")
ax.contour(axis, axis, score, levels=[0.0], colors="white", linewidths=2)
outside = model.predict(ring) < 0
ax.plot(*ring[~outside].T, ".", color="k", markersize=3)
ax.plot(*ring[outside].T, "x", color="#D55E00")
ax.set(title="Inside the white line is normal", aspect="equal")
figure.colorbar(image, ax=ax, label="decision function")
plt.show()
