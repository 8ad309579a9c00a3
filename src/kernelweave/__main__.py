"""``python -m kernelweave`` is the command ``kernelweave``."""

from __future__ import annotations

from .app.cli import main

main()
