"""Sending less to the terminal than Textual does by itself.

Textual 8 sends a changed row of a widget from the left edge of the widget on, although it knows which cells changed;
over SSH that is five times what is needed.
"""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.control import Control
from textual._compositor import ChopsUpdate


class NarrowUpdate(ChopsUpdate):
    """A partial update that sends only the cells inside of its spans."""

    def render_segments(self, console: Console) -> str:
        sequences: list[str] = []
        for y, first, last in self.spans:
            for end, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=False):
                start, stop = max(x, first), min(end, last)
                if strip is not None and start < stop:
                    sequences.append(Control.move_to(start, y).segment.text)
                    sequences.append(strip.crop(start - x, stop - x).render(console))
        return "".join(sequences)


def narrowed(update: RenderableType | None) -> RenderableType | None:
    """The same update, narrowed where it is a partial one."""
    if isinstance(update, ChopsUpdate):
        return NarrowUpdate(update.chops, update.spans, update.chop_ends)
    return update
