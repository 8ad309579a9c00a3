"""
Gram matrices you already have
==============================

Kernels that come from elsewhere (graph kernels, sequence alignments, another program) enter as matrices. An
array of shape (n, n, M) goes through scikit-learn's cross-validation like any other X: rows and columns are
both cut to the training samples.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.metrics.pairwise import laplacian_kernel, linear_kernel, rbf_kernel
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.preprocessing import StandardScaler

import kernelweave as kw

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
Ks = np.stack([linear_kernel(X), rbf_kernel(X), laplacian_kernel(X)], axis=2)
names = ["linear", "rbf", "laplacian"]

folds = StratifiedKFold(5, shuffle=True, random_state=0)
single = [cross_val_score(kw.MKLClassifier("precomputed"), Ks[:, :, [m]], y, cv=folds) for m in range(3)]
learned = cross_val_score(kw.MKLClassifier("precomputed", regularizer=kw.LpNorm(p=2)), Ks, y, cv=folds)
uniform = cross_val_score(kw.MKLClassifier("precomputed", regularizer="uniform"), Ks, y, cv=folds)

# %%
# Each bar is the mean of five folds, each dot a fold. One kernel would have done here: worth knowing.

figure, ax = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
scores = [*single, uniform, learned]
labels = [*(f"{name} alone" for name in names), "plain sum", "learned weights"]
ax.barh(labels, [s.mean() for s in scores], color=["0.7"] * 3 + ["#E69F00", "#0072B2"])
for row, s in enumerate(scores):
    ax.plot(s, np.full(5, row), "k.", markersize=4)
ax.set(xlim=(0.9, 1.0), xlabel="accuracy in cross-validation")
ax.invert_yaxis()
plt.show()
