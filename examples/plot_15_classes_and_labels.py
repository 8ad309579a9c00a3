"""
One machine of all classes, and several labels per sample
=========================================================

One-vs-rest asks of every class whether it is the right one; ``multiclass="joint"`` asks which class is ahead
(Crammer & Singer 2001; with several kernels Zien & Ong 2007). Of five classes in a line, no linear function
is positive on one of the inner classes alone, so one-vs-rest learns them badly. The joint machine asks for no
more than that their functions be the largest there.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelweave as kw
from kernelweave.kernels import Linear

rng = np.random.default_rng(0)
y = np.repeat(np.arange(5), 40)
X = np.column_stack([2.0 * (y - 2), np.zeros(200)]) + 0.5 * rng.normal(size=(200, 2))
kernels = {"position": Linear(columns=[0]), "noise": Linear(columns=[1])}

models = {
    scheme: kw.MKLClassifier(kernels, C=1.0, normalize=None, multiclass=scheme).fit(X, y)
    for scheme in ("shared", "joint")
}
for scheme, model in models.items():
    print(f"{scheme:7} accuracy {model.score(X, y):.2f}  weights {model.weights_.round(2)}")

# %%
# The functions of the classes along the line: where that of a class is the largest, it is predicted.
# Below, the share of each class that is right.

grid = np.column_stack([np.linspace(-6, 6, 200), np.zeros(200)])
figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), sharex=True, layout="constrained")
for ax, (scheme, model) in zip(axes, models.items(), strict=True):
    ax.plot(grid[:, 0], model.decision_function(grid), label=[f"class {k}" for k in model.classes_])
    ax.set(title=f'multiclass="{scheme}"', xlabel="position", ylabel="value of the class")
    for k in model.classes_:
        right = (model.predict(X[y == k]) == k).mean()
        place = {"xy": (2.0 * (k - 2), 0.02), "xycoords": ("data", "axes fraction"), "ha": "center"}
        ax.annotate(f"{right:.0%}", **place)
axes[0].legend()
plt.show()

# %%
# Several labels per sample are a matrix of 0 and 1. Every label is a problem of its own on the same Gram
# matrices, so the weights say which kernel tells it.

labels = np.column_stack([X[:, 0] > 0.0, X[:, 1] > 0.0, np.abs(X[:, 0]) + np.abs(X[:, 1]) > 2.0]).astype(int)
views = kw.kernels.per_feature(kw.kernels.RBF())
tagged = kw.MKLClassifier(views, regularizer=kw.LpNorm(p=1), C=10.0).fit(X, labels)
print(tagged.weights_frame().pivot(index="model", columns="kernel", values="weight").round(2))
print(f"all labels right: {tagged.score(X, labels):.2f}")
