"""
Several tables of the same samples
==================================

Data of several kinds come in several tables, each in an order of its own and not every sample in every table.
A dict of them is an X like any other: rows are joined by their IDs, in the order of the labels.

The tables are the three blocks of the breast-cancer data that come with scikit-learn, under IDs of patients.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_breast_cancer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import kernelweave as kw
from kernelweave.kernels import RBF, Linear

data = load_breast_cancer(as_frame=True)
ids = np.array([f"P{k:03d}" for k in range(len(data.data))])
columns = data.data.set_axis(ids)
labels = pd.Series(data.target_names[data.target], index=ids)
tables = {
    name: columns.iloc[:, 10 * k : 10 * k + 10].sample(frac=0.8, random_state=k)
    for k, name in enumerate(("mean", "error", "worst"))
}

# %%
# Every table has four fifths of the patients. A patient that a table does not have has a gap there.

labels = labels[kw.Views(tables).ids]  # a few patients are in no table
views = kw.Views(tables, ids=labels.index)
print(views)

# %%
# A linear and an RBF kernel for every table; scaling is learned from the training rows of each table alone.
# The fit completes what is missing from the other tables.

train = np.arange(len(views)) % 2 == 0
model = make_pipeline(
    kw.ViewTransformer(StandardScaler()), kw.MKLClassifier([Linear(), RBF()], missing="complete")
).fit(views[train], labels[train])
print(f"accuracy on new patients: {model.score(views[~train], labels[~train]):.3f}")

# %%
# New patients may come with any of the tables.

new, truth = views[~train], labels[~train]
scores = {}
for name, there in zip(new.names, new.observed.T, strict=True):
    scores[f"{name} alone"] = model.score(new[there].select([name]), truth[there])
scores["all tables"] = model.score(new, truth)

figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
bars = ax.barh(list(scores), list(scores.values()))
ax.bar_label(bars, fmt="%.3f", padding=3)
ax.set(xlim=(0.5, 1.05), xlabel="accuracy", title="One model, whichever table a new patient comes with")
plt.show()
