"""What stands on the core and is never imported by it: command line, report page, demo, data sets.

Reading order: ``cli`` (one file per command; those with an underscore are its parts), ``report``
(``report.py``, then ``given.py`` and ``templates/page.html``), ``datasets`` (``catalogue.py``), ``demo.py``.
People import ``kernelweave.report``, ``kernelweave.datasets`` and ``kernelweave.cli``, doors to here.
"""
