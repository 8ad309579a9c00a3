"""What stands on the core and is never imported by it: command line, report page, demo, data sets.

Reading order: ``cli`` (one file per command, and its parts), ``report`` (``report.py``,
then ``gather`` and ``sections``), ``datasets`` (``catalogue.py``), ``demo.py``. People import
``kernelweave.report``, ``kernelweave.datasets`` and ``kernelweave.cli``, which are doors to here.
"""
