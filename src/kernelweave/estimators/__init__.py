"""scikit-learn estimators for multiple kernel learning."""

from .auto import MKLAutoClassifier, MKLAutoRegressor
from .classifier import MKLClassifier
from .cross_validation import MKLClassifierCV, MKLRegressorCV
from .empirical_bayes import EmpiricalBayesClassifier, EmpiricalBayesRegressor
from .gmkl import GMKLClassifier, GMKLOneClass, GMKLRegressor
from .group_omp import GroupOMPClassifier, GroupOMPRegressor
from .group_omp_cv import GroupOMPClassifierCV, GroupOMPRegressorCV
from .one_class import MKLOneClass
from .path import Path, mkl_path
from .regressor import MKLRegressor
from .view_transformer import ViewTransformer

__all__ = [
    "EmpiricalBayesClassifier",
    "EmpiricalBayesRegressor",
    "GMKLClassifier",
    "GMKLOneClass",
    "GMKLRegressor",
    "GroupOMPClassifier",
    "GroupOMPClassifierCV",
    "GroupOMPRegressor",
    "GroupOMPRegressorCV",
    "MKLAutoClassifier",
    "MKLAutoRegressor",
    "MKLClassifier",
    "MKLClassifierCV",
    "MKLOneClass",
    "MKLRegressor",
    "MKLRegressorCV",
    "Path",
    "ViewTransformer",
    "mkl_path",
]
