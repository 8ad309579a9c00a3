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
from kernelweave.inspection import AlignmentDisplay
from kernelweave.kernels import RBF

data = load_breast_cancer(as_frame=True)
X = data.data.copy()
X[:] = StandardScaler().fit_transform(X)
kernels = {name: RBF(columns=[name]) for name in X.columns[:10]}

cosines = theory.pairwise_alignment(kernels, X)
print(f"{len(kernels)} kernels amount to {cosines.parts['effective_number']:.1f} different ones")

# %%
# Radius, perimeter and area are three names for one thing, and concavity is nearly another.

names = [name.removeprefix("mean ") for name in kernels]
figure, ax = plt.subplots(figsize=(7, 6), layout="constrained")
AlignmentDisplay(cosines.value, names).plot(ax=ax)
plt.show()
