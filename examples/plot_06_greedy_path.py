"""
Kernels chosen one after another
================================

MKL-GOMP adds the kernel that explains most of what is left, fits all chosen kernels again, and goes on. One
run gives the models of all sizes, so the question "how many kernels?" is one curve.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelweave as kw
from kernelweave.kernels import RBF, per_feature

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, size=(600, 20))
f = np.sin(2 * X[:, 3]) + 0.5 * X[:, 8] ** 2 + np.abs(X[:, 11]) + 0.5 * np.cos(3 * X[:, 15])
y = f + 0.3 * rng.normal(size=600)
train, test = slice(0, 200), slice(200, None)

model = kw.GroupOMPRegressor(per_feature(RBF(gamma=1.0)), n_kernels=12, alpha=1e-3).fit(X[train], y[train])
errors = [np.sqrt(np.mean((y[test] - p) ** 2)) for p in model.staged_predict(X[test])]
names = [model.kernel_names_[m] for m in model.selected_]

figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
ax.plot(1 + np.arange(len(errors)), errors, marker="o")
ax.axhline(0.3, color="0.5", linestyle=":")
ax.annotate("noise", (len(errors) - 0.6, 0.31), color="0.4")
ax.set_xticks(1 + np.arange(len(errors)), [f"{k}\n{name}" for k, name in enumerate(names, start=1)])
ax.set(xlabel="kernels, and the one added", ylabel="test error", title="Four features carry the target")
plt.show()
