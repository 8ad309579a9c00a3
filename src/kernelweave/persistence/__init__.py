"""Model files: `save_model` and `load_model`, one file, arrays and JSON, no code."""

from .classes import skops_types
from .codec import ModelFileError, NotStored
from .files import load_model, save_model

__all__ = ["ModelFileError", "NotStored", "load_model", "save_model", "skops_types"]
