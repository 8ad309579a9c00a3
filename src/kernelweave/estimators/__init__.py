"""scikit-learn estimators for multiple kernel learning."""

from .classifier import MKLClassifier
from .cross_validation import MKLClassifierCV, MKLRegressorCV
from .empirical_bayes import EmpiricalBayesClassifier, EmpiricalBayesRegressor
from .gmkl import GMKLClassifier, GMKLRegressor
from .one_class import MKLOneClass
from .path import Path, mkl_path
from .regressor import MKLRegressor

__all__ = [
    "EmpiricalBayesClassifier",
    "EmpiricalBayesRegressor",
    "GMKLClassifier",
    "GMKLRegressor",
    "MKLClassifier",
    "MKLClassifierCV",
    "MKLOneClass",
    "MKLRegressor",
    "MKLRegressorCV",
    "Path",
    "mkl_path",
]
