"""Figures as SVG: places across in percent and down in pixels, so that text keeps its size on a phone."""

from __future__ import annotations

from .bars import Bar, bars
from .heatmap import heatmap
from .lines import Line, lines
from .scatter import Point, scatter

__all__ = ["Bar", "Line", "Point", "bars", "heatmap", "lines", "scatter"]
