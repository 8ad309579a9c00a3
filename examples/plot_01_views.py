"""
Several views of the same samples
=================================

The usual situation: several groups of columns describe the same samples, and the question is how much each
of them has to say. Each view gets a kernel of its own; the weights are learned together with the classifier.

Here the views are the three blocks of the breast-cancer table that comes with scikit-learn (mean, error and
worst value of ten measurements of cell nuclei), and five more of pure noise.
"""

# %%
# One kernel per view, 200 training samples.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave.inspection import KernelWeightsDisplay
from kernelweave.kernels import Linear, per_group

X, y = load_breast_cancer(return_X_y=True)
noise = np.random.default_rng(0).normal(size=(len(X), 50))
X = StandardScaler().fit_transform(np.hstack([X, noise]))
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=200, stratify=y, random_state=0)

names = ["mean", "error", "worst", *(f"noise {k}" for k in range(1, 6))]
views = per_group({name: slice(10 * k, 10 * k + 10) for k, name in enumerate(names)}, Linear())
clf = kw.MKLClassifier(views, regularizer=kw.LpNorm(p=1), C=1.0).fit(X_train, y_train)
uniform = kw.MKLClassifier(views, regularizer="uniform", C=1.0).fit(X_train, y_train)

print(f"learned weights: {clf.score(X_test, y_test):.3f}, plain sum: {uniform.score(X_test, y_test):.3f}")
print(f"within {100 * clf.dual_gap_:.2f} % of the optimum, proven")

# %%
# The views of noise are turned down, and nothing had to be said about them.

KernelWeightsDisplay.from_estimator(clf)
plt.title("Weights of the eight views")
plt.show()
