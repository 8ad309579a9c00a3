"""
Features that matter only together
==================================

The class is the sign of a product of two features: neither says anything alone, so no sum of kernels on
single features can find them. Generalized MKL learns the widths of one kernel on all of them,
k(x, z) = exp(-sum_k d_k (x_k - z_k)^2), and a feature with d_k = 0 is gone.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelweave as kw
from kernelweave.kernels import RBF, per_feature

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 12))
y = np.sign(X[:, 2] * X[:, 7])
train, test = slice(0, 200), slice(200, None)

gmkl = kw.GMKLClassifier(C=10.0).fit(X[train], y[train])
summed = kw.MKLClassifier(per_feature(RBF()), regularizer=kw.LpNorm(p=1)).fit(X[train], y[train])

# %%
# The learned kernel finds both features; the weighted sum spreads over noise.

figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained", sharex=True)
for ax, model, title in zip(
    axes, [summed, gmkl], ["sum of kernels on single features", "one kernel, widths learned"], strict=True
):
    score = model.score(X[test], y[test])
    colours = ["#D55E00" if k in (2, 7) else "0.7" for k in range(12)]
    ax.bar(range(12), model.weights_ / model.weights_.max(), color=colours)
    ax.set(title=f"{title}\naccuracy {score:.2f}", xlabel="feature")
axes[0].set_ylabel("relative weight")
plt.show()
