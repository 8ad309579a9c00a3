"""Names to parts: how strings such as ``"hinge"`` or ``"lp"`` find their class.

A part (loss, regulariser, kernel, Gram engine, solver) is one class in one file, exported
from its package. ``Registry`` collects the exported classes of a package, so that tests,
documentation and ``"auto"`` see a new part as soon as it is exported.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any


def did_you_mean(name: Any, known: Iterable[str]) -> str:
    """A question to end a message with, where a known name is close to the one given; else nothing.

    Examples
    --------
    >>> did_you_mean("RFB", ["linear", "rbf"])
    " Did you mean 'rbf'?"
    """
    by_lower = {candidate.lower(): candidate for candidate in known}
    wanted = str(name).lower()
    begun = [lower for lower in by_lower if len(wanted) > 2 and lower.startswith(wanted)]
    found = [*get_close_matches(wanted, by_lower, n=1), *begun]
    return f" Did you mean {by_lower[found[0]]!r}?" if found else ""


def article(word: str) -> str:
    """The word with "a" or "an" before it.

    Examples
    --------
    >>> article("approximation"), article("MKLSolver"), article("loss")
    ('an approximation', 'an MKLSolver', 'a loss')
    """
    return f"{'an' if word[0].lower() in 'aeio' or word.startswith('MKL') else 'a'} {word}"


class Registry(Mapping[str, type]):
    """The parts of one kind, by name.

    Parameters
    ----------
    kind : str
        What the parts are, for error messages ("loss", "regularizer", ...).
    classes : iterable of type
        Classes carrying a ``name`` attribute.

    Examples
    --------
    >>> from kernelweave.losses import LOSSES
    >>> sorted(LOSSES)[0]
    'censored_eps_insensitive'
    """

    def __init__(self, kind: str, classes: tuple[type, ...]) -> None:
        self.kind = kind
        self._parts = {cls.name: cls for cls in classes}  # type: ignore[attr-defined]

    def __getitem__(self, name: str) -> type:
        return self._parts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def add(self, cls: type) -> type:
        """Add a part of your own under its `name`, for this session; also a class decorator.

        Strings then find it, and so does "auto".

        Examples
        --------
        >>> from kernelweave.losses import Loss
        >>> class Absolute(Loss):
        ...     name = "absolute"
        >>> losses = Registry("loss", ())
        >>> losses.add(Absolute) is losses["absolute"]
        True
        """
        name = getattr(cls, "name", "")
        if not name or self._parts.get(name, cls) is not cls:
            raise ValueError(
                f"{cls.__name__}.name={name!r}: a {self.kind} needs a `name` that no other one has."
            )
        self._parts[name] = cls
        return cls

    def resolve(self, spec: Any, base: type, argument: str | None = None) -> Any:
        """Return `spec` itself if it is a part, or the default part of that name.

        Parameters
        ----------
        spec : str or part
            The user's choice.
        base : type
            The class every part of this kind derives from.
        argument : str, optional
            The estimator parameter to name in the error; defaults to the kind.
        """
        if isinstance(spec, base):
            return spec
        if isinstance(spec, str) and spec in self._parts:
            return self._parts[spec]()
        if inspect.isclass(spec) and issubclass(spec, base):
            name = spec.__name__
            raise ValueError(f"{argument or self.kind}={name} is a class: pass an object, {name}(...).")
        known = ", ".join(repr(name) for name in sorted(self._parts))
        hint = did_you_mean(spec, self._parts) if isinstance(spec, str) else ""
        raise ValueError(
            f"{argument or self.kind}={spec!r} is not {article(self.kind)}: pass one of {known}, or "
            f"{article(base.__name__)} object.{hint}"
        )
