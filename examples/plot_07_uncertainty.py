"""
Weights by evidence, predictions with error bars
================================================

Empirical Bayes sees the target as a sum of Gaussian processes, one per kernel, and chooses the weights and
the noise that make the data most probable. There is no C to cross-validate, weights become exactly zero, and
predictions come with standard deviations.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelweave as kw
from kernelweave.kernels import RBF, Linear

rng = np.random.default_rng(0)
x = np.sort(np.concatenate([rng.uniform(0, 4, 40), rng.uniform(6, 10, 40)]))
y = 0.3 * x + np.sin(2 * x) + 0.2 * rng.normal(size=80)

kernels = {
    "trend": Linear(),
    "slow": RBF(gamma=0.05),
    "medium": RBF(gamma=1.0),
    "fast": RBF(gamma=50.0),
}
model = kw.EmpiricalBayesRegressor(kernels).fit(x[:, None], y)
print({name: round(float(d), 2) for name, d in zip(model.kernel_names_, model.weights_, strict=True)})

grid = np.linspace(-1, 11, 300)
mean, std = model.predict(grid[:, None], return_std=True)

# %%
# The band widens in the gap and beyond the data, where nothing was seen.

figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
ax.fill_between(grid, mean - 2 * std, mean + 2 * std, alpha=0.25, label="two standard deviations")
ax.plot(grid, mean, label="prediction")
ax.plot(grid, 0.3 * grid + np.sin(2 * grid), "--", color="0.4", label="truth")
ax.plot(x, y, ".", color="k", markersize=4)
ax.set(xlabel="x", ylabel="y", ylim=(-2.5, 6))
ax.legend(loc="upper left")
plt.show()
