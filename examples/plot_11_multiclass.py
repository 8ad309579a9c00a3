"""
Ten classes, one set of weights
===============================

With more than two classes each class gets a machine of its own, and either weights of its own
(``multiclass="ovr"``) or weights shared with the others (``"shared"``). Shared weights answer the simpler
question "which kernels matter for this task?"; the Gram matrices are computed once in both cases.

The views are the rows of pixels of scikit-learn's handwritten digits.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import kernelweave as kw
from kernelweave.kernels import RBF, per_group

X, y = load_digits(return_X_y=True)
rows = {f"row {k}": slice(8 * k, 8 * k + 8) for k in range(8)}
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, train_size=400, stratify=y, random_state=0)

options = {"regularizer": kw.LpNorm(p=4 / 3), "C": 10.0}
own = kw.MKLClassifier(per_group(rows, RBF()), **options).fit(X_train, y_train)
shared = kw.MKLClassifier(per_group(rows, RBF()), multiclass="shared", **options).fit(X_train, y_train)
print(f"own weights {own.score(X_test, y_test):.3f}, shared weights {shared.score(X_test, y_test):.3f}")

# %%
# The first and the last row of pixels matter least, whichever the digit.

figure, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
table = np.vstack([own.weights_, shared.weights_])
image = ax.imshow(table, cmap="viridis", aspect="auto", vmin=0)
ax.set_xticks(range(8), list(rows))
ax.set_yticks(range(11), [*(f"digit {c}" for c in own.classes_), "shared"])
ax.axhline(9.5, color="white", linewidth=2)
figure.colorbar(image, ax=ax, label="weight")
plt.show()
