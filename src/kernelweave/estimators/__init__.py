"""scikit-learn estimators for multiple kernel learning."""

from .auto import MKLAutoClassifier, MKLAutoRegressor
from .classifier import MKLClassifier
from .cross_validation import MKLClassifierCV, MKLRegressorCV
from .empirical_bayes import EmpiricalBayesClassifier, EmpiricalBayesRegressor
from .gmkl import GMKLClassifier, GMKLOneClass, GMKLRegressor
from .group_omp import GroupOMPClassifier, GroupOMPRegressor
from .group_omp_cv import GroupOMPClassifierCV, GroupOMPRegressorCV
from .one_class import MKLOneClass
from .ordinal import MKLOrdinalClassifier
from .path import Path, mkl_path
from .quantile import MKLQuantileRegressor
from .regressor import MKLRegressor
from .survival import GroupOMPSurvival, MKLAutoSurvival, MKLSurvival, MKLSurvivalCV
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
    "GroupOMPSurvival",
    "MKLAutoClassifier",
    "MKLAutoRegressor",
    "MKLAutoSurvival",
    "MKLClassifier",
    "MKLClassifierCV",
    "MKLOneClass",
    "MKLOrdinalClassifier",
    "MKLQuantileRegressor",
    "MKLRegressor",
    "MKLRegressorCV",
    "MKLSurvival",
    "MKLSurvivalCV",
    "Path",
    "ViewTransformer",
    "mkl_path",
]
