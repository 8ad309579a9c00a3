"""
Convergence, with the gap that proves it
========================================

Every convex fit knows two numbers: the value P of what it minimises, and the value D of a dual problem that
no solution can beat. The optimum lies between them, so (P - D) / P bounds how far the fit can be from it.
``tol`` is that number, not the size of the last step.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave.inspection import ConvergenceDisplay
from kernelweave.kernels import bandwidths

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)

fits = {
    f"p = {p:.3g}": kw.MKLClassifier(bandwidths(20), regularizer=kw.LpNorm(p=p), tol=1e-6).fit(X, y)
    for p in (1, 4 / 3, 2, 4)
}

# %%
# Twenty Gaussian kernels, 569 samples: a handful of support vector machines each.

figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
ConvergenceDisplay.from_estimator(fits, ax=ax)
ax.set_title("How far from the optimum, at most")
plt.show()
