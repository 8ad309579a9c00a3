"""
Why a sample has its value
==========================

Attributions by kernel and by feature, exact; and a case in which a naive reading of them misleads.
"""

# %%
# The target is a product of two columns: neither has an effect on average, and both rank first.

import matplotlib.pyplot as plt
import numpy as np

import kernelweave as kw
from kernelweave.inspection import BeeswarmDisplay, WaterfallDisplay
from kernelweave.kernels import RBF, Linear

rng = np.random.default_rng(0)
X = rng.normal(size=(150, 6))
y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=150)
reg = kw.MKLRegressor({"smooth": RBF(), "line": Linear()}, C=10.0).fit(X, y)
found = kw.explain(reg, X, background=X[:50])

fig, (left, right, below) = plt.subplots(3, 1, figsize=(7, 9), layout="constrained")
WaterfallDisplay(found).plot(left, sample=3)
BeeswarmDisplay(found).plot(right)

# %%
# Here the target depends on the column "cause" only. Its noisy copy has no effect on it, but its attributions
# are nearly as large: the model reads both, and has no reason to prefer one. Attributions tell what the model
# does, not what would happen to the target if a column were changed.

cause = rng.normal(size=200)
table = np.column_stack([cause, cause + 0.1 * rng.normal(size=200), rng.normal(size=200)])
target = cause + 0.5 * rng.normal(size=200)
model = kw.MKLRegressor(RBF()).fit(table, target)
sizes = kw.explain(model, table, background=table[:50]).importance()

errors = np.array([sizes.mean - sizes.low, sizes.high - sizes.mean])
below.barh(["cause", "copy", "noise"], sizes.mean, xerr=errors)
below.set_xlabel("mean |attribution|, and 95 % interval over samples")
plt.show()
