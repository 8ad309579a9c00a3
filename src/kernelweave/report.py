"""The door to the report page: one HTML file that says what a fitted model has learned."""

from __future__ import annotations

from .app.report import Report, write_report

__all__ = ["Report", "write_report"]
