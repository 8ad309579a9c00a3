"""
From a selection to the plain sum: the norm p
=============================================

``LpNorm(p)`` bounds the weights by sum d_m^p <= 1. At p = 1 few kernels carry the model and the others are
exactly zero; as p grows the weights even out, and at p = infinity they are all one: the plain sum.

Twelve features, one linear kernel each. The first three carry the target, ever more weakly.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelweave as kw
from kernelweave.kernels import Linear, per_feature

rng = np.random.default_rng(1)
X = rng.normal(size=(120, 12))
y = X[:, :3] @ [1.0, 0.7, 0.4] + rng.normal(size=120)

orders = [1, 1.05, 1.15, 4 / 3, 1.6, 2, 3, 5, 10, np.inf]
reg = kw.MKLRegressor(per_feature(Linear()), regularizer=kw.LpNorm(), C=0.05)
path = kw.mkl_path(reg, X, y, "p", orders)

# %%
# ``mkl_path`` computes the Gram matrices once and starts each fit from the one before; every point of it is
# certified to the estimator's ``tol``.

shares = path.weights / path.weights.max(axis=1, keepdims=True)
figure, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
image = ax.imshow(shares.T, cmap="viridis", aspect="auto", vmin=0, vmax=1)
zero = np.argwhere(path.weights.T == 0)
ax.scatter(zero[:, 1], zero[:, 0], marker="x", color="white", s=18, linewidths=0.8)
ax.set_xticks(range(len(orders)), [f"{p:.3g}" for p in orders])
ax.set_yticks(range(12), path.kernel_names)
ax.set(xlabel="p", title="Weights relative to the largest; crosses are exact zeros")
figure.colorbar(image, ax=ax)
plt.show()
