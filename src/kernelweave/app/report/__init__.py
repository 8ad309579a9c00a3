"""The report page: one HTML file that says what a fitted model has learned, and how far to trust it."""

from __future__ import annotations

from .report import Report, write_report

__all__ = ["Report", "write_report"]
