"""``python -m kernelweave.cli`` is the command ``kernelweave``."""

from . import main

main()
