"""scikit-learn estimators for multiple kernel learning."""

from .classifier import MKLClassifier
from .empirical_bayes import EmpiricalBayesClassifier, EmpiricalBayesRegressor
from .one_class import MKLOneClass
from .regressor import MKLRegressor

__all__ = [
    "EmpiricalBayesClassifier",
    "EmpiricalBayesRegressor",
    "MKLClassifier",
    "MKLOneClass",
    "MKLRegressor",
]
