"""
A regularisation path
=====================

How the component norms grow with C, the price of training errors. With few errors allowed (small C) the
strongest kernels enter alone; others follow. The path is computed with warm starts, and the Gram matrices
are computed once.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave.inspection import PathDisplay
from kernelweave.kernels import RBF, per_feature

data = load_diabetes(as_frame=True)
X = StandardScaler().set_output(transform="pandas").fit_transform(data.data)
y = StandardScaler().fit_transform(data.target.to_frame()).ravel()

reg = kw.MKLRegressor(per_feature(RBF()), regularizer=kw.ElasticNet(l1_ratio=0.8))
path = kw.mkl_path(reg, X, y, "C", np.geomspace(3e-3, 1.0, 20))

# %%
# A kernel is in the model where its norm is not zero.

figure, ax = plt.subplots(figsize=(7.5, 4), layout="constrained")
PathDisplay.from_path(path, quantity="norms", ax=ax)
ax.set_title("Kernels enter one after another")
plt.show()
