"""
What each kernel adds to one prediction
=======================================

A model of several kernels is a sum of functions, f(x) = b + sum_m f_m(x), so every prediction can be taken
apart. Here: a tumour that the classifier is unsure about, and what each view says about it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave.inspection import ContributionDisplay
from kernelweave.kernels import RBF, per_group

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

# normalize="center": every component has mean zero over the training samples
views = per_group({"mean": slice(0, 10), "error": slice(10, 20), "worst": slice(20, 30)}, RBF())
clf = kw.MKLClassifier(views, regularizer=kw.LpNorm(p=4 / 3), normalize="center").fit(X_train, y_train)

# %%
# The views disagree, and the sum is close to zero: a case for a second look.

unsure = int(np.argmin(np.abs(clf.decision_function(X_test))))
figure, ax = plt.subplots(figsize=(7, 2.8), layout="constrained")
ContributionDisplay.from_estimator(clf, X_test, sample=unsure, ax=ax)
ax.set_title("Right of zero speaks for a benign tumour, left of it for a malignant one")
plt.show()
