"""What goes wrong with model files, and what they leave out."""

from __future__ import annotations

from dataclasses import dataclass


class ModelFileError(ValueError):
    """A model cannot be stored, or a file is no model that this version can read.

    Every damaged, truncated, hostile or newer file gives this error and no other. A path that
    does not exist or may not be read stays an `OSError`.

    Examples
    --------
    >>> issubclass(ModelFileError, ValueError)
    True
    """


@dataclass(frozen=True)
class NotStored:
    """Stands in a loaded model for a parameter that only a new fit would need and no file holds.

    Such are splitters, scorers, random generators, functions that select columns, and matrices of
    kernels with weight 0. The model predicts without them; before fitting again, set the parameter.

    Parameters
    ----------
    what : str
        What was left out.

    Examples
    --------
    >>> NotStored("RepeatedKFold")
    <not stored: RepeatedKFold>
    """

    what: str

    def __repr__(self) -> str:
        return f"<not stored: {self.what}>"
