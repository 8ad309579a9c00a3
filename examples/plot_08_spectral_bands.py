"""
Which part of a spectrum matters
================================

Spectra are cut into bands, each with a kernel of its own. SMKL, a concave penalty on the component norms,
keeps as few bands as it can; the weights say where the information is.

The spectra are simulated: three absorption lines over a smooth background, and the concentration to be
predicted drives the lines at 0.325 and 0.625 only.
"""

import matplotlib.pyplot as plt
import numpy as np

import kernelweave as kw
from kernelweave.inspection import BandsDisplay
from kernelweave.kernels import Linear, bands

rng = np.random.default_rng(0)
n, width, n_bands = 150, 200, 20
axis = np.linspace(0, 1, width)


def line(centre):
    return np.exp(-0.5 * ((axis - centre) / 0.015) ** 2)


y = rng.uniform(0, 1, n)
other = rng.uniform(0, 1, n)
background = np.outer(rng.normal(1, 0.1, n), np.cos(2 * axis)) + 0.1 * np.outer(rng.normal(size=n), axis)
X = background + np.outer(y, 0.3 * line(0.325) + 0.25 * line(0.625)) + 0.5 * np.outer(other, line(0.80))
X += 0.02 * rng.normal(size=X.shape)

reg = kw.MKLRegressor(bands(n_bands, Linear()), regularizer=kw.SMKL(), C=100.0).fit(X[:100], y[:100])
print(f"R2 on new spectra: {reg.score(X[100:], y[100:]):.3f}, bands used: {(reg.weights_ > 0).sum()}")

# %%
# Both lines that carry the concentration are found, and the line that does not is left out. A third band
# tells the background.

figure, ax = plt.subplots(figsize=(7, 3.8), layout="constrained")
BandsDisplay.from_estimator(reg, positions=axis, spectrum=X.mean(axis=0), ax=ax)
ax.set_title("Three bands of twenty are enough")
plt.show()
