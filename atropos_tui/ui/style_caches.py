"""Letting go of the lines of screens that are closed.

They are thousands of objects a screen, and for those that only the garbage collector finds it stops everything.
"""

from __future__ import annotations

from textual._styles_cache import StylesCache
from textual.widget import Widget


def let_go_of_lines(widget: Widget) -> None:
    """To be called when the widget is unmounted, for it refers to itself, so that only the collector would find it."""
    widget._styles_cache.clear()


def let_go_of_closed_screens(_: object) -> None:
    """To be called when screens open and close.

    Textual 8 has an `lru_cache` on a method, which keeps each `self`: what the last 1,024 widgets were painted with,
    whether they are there or not. What is there still is put in again when it is painted next.
    """
    StylesCache.get_inner_outer.cache_clear()
