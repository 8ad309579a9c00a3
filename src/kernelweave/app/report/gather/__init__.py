"""From a fitted model and its data to the plain data of a report.

Reading order: ``given`` (the model and its data, asked for in the ways the others need), ``fit``,
``kernels``, ``samples``, ``scores`` with ``baselines``, ``settings``.
"""
