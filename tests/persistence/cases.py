"""An example of every class that a model file may hold, with data for the kernels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, RationalQuadratic
from sklearn.preprocessing import StandardScaler

from kernelweave.kernels import RBF, Linear, Precomputed, ProductRBF, Spectrum, WeightedDegree
from kernelweave.kernels.parametric import ParametricKernel
from kernelweave.persistence.classes import find_class, own_classes
from kernelweave.regularizers import GroupLassoTerm, LogTerm, MFocussTerm
from kernelweave.solvers.kernel_gradient import L1, L2

N_TRAIN, N_NEW = 24, 9


class Case(NamedTuple):
    """A specification of kernels, the data it is fitted on, and new data."""

    spec: Any
    X: Any
    X_new: Any


def gram_matrix(seed: int) -> np.ndarray:
    root = np.random.RandomState(seed).standard_normal((N_TRAIN + N_NEW, 5))
    return root @ root.T


#: parameters of the classes that need some; others are tried as they are
ARGUMENTS: dict[str, dict[str, Any]] = {
    "kernel:GPKernel": {"kernel": ConstantKernel(2.0) * RationalQuadratic(alpha=0.7) + DotProduct() ** 2},
    "kernel:Precomputed": {"matrix": gram_matrix(0)},
    "kernel:Product": {"kernels": [RBF(gamma="median"), "linear"]},
    "kernel:Scaled": {"kernel": RBF() * Linear(), "factor": 2.0},
    "kernel:SpatialPyramid": {"levels": 1, "weights": [0.5, 1.0]},
    "kernel:Sum": {"kernels": [RBF(columns=slice(0, 2)), Linear(columns=[2]), RationalQuadratic()]},
    "kernel:TaskKernel": {"kernel": RBF(columns=[1, 2, 3]), "task": 0, "value": 1.0},
    "kernel:Fixed": {"kernel": RBF()},
    "kernel:GroupProductRBF": {"groups": {"a": [0, 1], "b": slice(2, 4)}},
    "kernel:ProductOf": {"kernels": {"one": ProductRBF(columns=[0, 1]), "two": Linear()}},
    "kernel:WeightedSum": {"kernels": [RBF(), Linear(), ProductRBF()]},
    "transformer:ViewTransformer": {"transformers": {"a": StandardScaler()}},
    "family:Bands": {"n_bands": 2},
    "family:GeneSets": {"groups": {"a": [0, 1], "b": [1, 2, 3]}},
    "family:PerFeature": {"kernel": [RBF(), Linear()]},
    "family:PerGroup": {"groups": {"a": [0, 1], "b": [False, True, True, False]}},
    "family:RandomSubsets": {"n_kernels": 30},
    "regularizer:Mahalanobis": {"E": np.eye(3) + 0.1},
    "regularizer:PatternNorm": {"patterns": np.array([[True, True, False], [False, True, True]])},
    "regularizer:TermSum": {"terms": [LogTerm(0.5), 2.0 * GroupLassoTerm(), MFocussTerm()]},
    "penalty:PenaltySum": {"penalties": [L1(0.1), L2(0.2, mean=1.0)]},
    "constraint:Box": {"upper": np.array([np.inf, 2.0, 1.0, 1.0])},
}

#: every class but the estimators
PARTS = sorted(key for key in own_classes() if not key.startswith("model:"))


def example(key: str) -> Any:
    return find_class(key)(**ARGUMENTS.get(key, {}))


def of_kind(kind: str, *without: str) -> list[str]:
    return [key for key in PARTS if key.startswith(f"{kind}:") and key.split(":")[1] not in without]


def numbers(n: int, seed: int) -> np.ndarray:
    """Non-negative, so that every kernel of numbers takes them; the first column holds task labels."""
    values = np.random.RandomState(seed).gamma(2.0, size=(n, 4))
    values[:, 0] = np.arange(n) % 3
    return values


def strings(n: int, seed: int) -> np.ndarray:
    rng = np.random.RandomState(seed)
    words = ["".join(rng.choice(list("ACGT"), rng.randint(6, 15))) for _ in range(n)]
    return np.array(words, dtype=object)[:, None]


def kernel_case(key: str) -> Case:
    """A registered kernel or family beside another kernel, on data of the kind it takes."""
    part = example(key)
    accepts = getattr(part, "accepts", "numeric")
    if accepts == "string":
        return Case([part, WeightedDegree(2), Spectrum(2)], strings(N_TRAIN, 0), strings(N_NEW, 1))
    if accepts == "index":
        indices = np.arange(N_TRAIN + N_NEW)[:, None]
        return Case(
            {"given": part, "other": Precomputed(gram_matrix(1))}, indices[:N_TRAIN], indices[N_TRAIN:]
        )
    return Case([part, RBF(factor=0.5), Linear()], numbers(N_TRAIN, 0), numbers(N_NEW, 1))


def labels(n: int = N_TRAIN) -> np.ndarray:
    return np.array(["ash", "birch", "cedar"])[np.arange(n) * 7 % 11 % 3]


def targets(n: int = N_TRAIN) -> np.ndarray:
    return np.sin(np.arange(n) * 1.3) + 0.1 * np.arange(n)


MODELS = [key.partition(":")[2] for key in own_classes() if key.startswith("model:")]
#: kernels with parameters to learn, for generalized MKL; `Fixed` has none
LEARNED = [key for key in of_kind("kernel", "Fixed") if issubclass(find_class(key), ParametricKernel)]
#: kernels and families for all other estimators
KERNELS = [key for key in of_kind("kernel", "Fixed") if key not in LEARNED] + of_kind("family")
