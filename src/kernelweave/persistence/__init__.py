"""Model files: `save_model` and `load_model`, one file, arrays and JSON, no code."""

from .errors import ModelFileError, NotStored
from .files import load_model, save_model
from .trusted import skops_types

__all__ = ["ModelFileError", "NotStored", "load_model", "save_model", "skops_types"]
