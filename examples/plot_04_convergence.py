"""
Convergence, with the gap that proves it
========================================

Every convex fit knows two numbers: the value P of what it minimises, and the value D of a dual problem that
no solution can beat. The optimum lies between them, so (P - D) / P bounds how far the fit can be from it.
``tol`` is that number, not the size of the last step.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave.kernels import bandwidths

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)

figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
for p, marker in zip([1, 4 / 3, 2, 4], "osd^", strict=True):
    clf = kw.MKLClassifier(bandwidths(20), regularizer=kw.LpNorm(p=p), C=1.0, tol=1e-6).fit(X, y)
    gap = np.maximum.accumulate(np.array(clf.history_["gap"])[::-1])[::-1]
    ax.semilogy(1 + np.arange(len(gap)), gap, marker=marker, label=f"p = {p:.3g}")
ax.axhline(1e-3, color="0.5", linestyle=":")
ax.annotate("default tol", (6.3, 1.3e-3), color="0.4")
ax.set(xlabel="machines trained", ylabel="relative duality gap", title="Twenty Gaussian kernels, 569 samples")
ax.legend()
plt.show()
