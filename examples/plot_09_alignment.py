"""
Do these kernels say the same thing?
====================================

Before weights are read, redundancy should be. The alignment of two kernels is the cosine of their centred
Gram matrices: kernels near 1 can take each other's place, and a small weight of one of them says nothing
about its information.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from kernelweave import theory
from kernelweave.kernels import RBF

data = load_breast_cancer(as_frame=True)
X = data.data.copy()
X[:] = StandardScaler().fit_transform(X)
kernels = {name: RBF(columns=[name]) for name in X.columns[:10]}

cosines = theory.pairwise_alignment(kernels, X)
target = theory.target_alignment(kernels, X, data.target)
print(f"{len(kernels)} kernels amount to {cosines.parts['effective_number']:.1f} different ones")

# %%
# Radius, perimeter and area are three names for one thing.

names = [name.removeprefix("mean ") for name in kernels]
figure, (left, right) = plt.subplots(
    1, 2, figsize=(8.5, 4.2), layout="constrained", width_ratios=[3, 1], sharey=True
)
image = left.imshow(cosines.value, cmap="viridis", vmin=0, vmax=1)
left.set_xticks(range(len(names)), names, rotation=60, ha="right")
left.set_yticks(range(len(names)), names)
left.set_title("with one another")
figure.colorbar(image, ax=left, shrink=0.7)
right.barh(range(len(names)), target.value, color="#E69F00")
right.set(title="with the target", xlabel="alignment")
plt.show()
