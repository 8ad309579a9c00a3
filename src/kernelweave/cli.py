"""The door to the command line: ``kernelweave``, or ``python -m kernelweave``."""

from __future__ import annotations

from .app.cli import app, main

__all__ = ["app", "main"]
