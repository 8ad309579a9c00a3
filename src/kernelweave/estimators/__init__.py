"""scikit-learn estimators for multiple kernel learning."""

from .classifier import MKLClassifier
from .one_class import MKLOneClass
from .regressor import MKLRegressor

__all__ = ["MKLClassifier", "MKLOneClass", "MKLRegressor"]
