"""Long lines cut to the width of the screen, before anything lays them out."""

from __future__ import annotations

from rich.cells import get_character_cell_size


def wrapped(line: str, width: int) -> list[str]:
    """`line` in parts of at most `width` cells, broken at a blank where one is near; only such blanks are left out.

    The line must be free of control characters (`text_safety.visible`).
    """
    return [line[start:end] for start, end in wrapped_ranges(line, width)]


def wrapped_ranges(line: str, width: int) -> list[tuple[int, int]]:
    """Where the parts of `wrapped` begin and end."""
    if width < 1:
        return []
    if len(line) * 2 <= width:
        return [(0, len(line))]
    ranges: list[tuple[int, int]] = []
    start, length, is_ascii = 0, len(line), line.isascii()
    while True:
        # A wide character goes into a column of one cell too.
        end = start + width if is_ascii else max(start + 1, fitting(line, start, width))
        if end >= length:
            break
        if line[end] != " ":
            blank = line.rfind(" ", start + 1, end)
            if blank - start >= (end - start) // 2:
                end = blank
        ranges.append((start, end))
        start = end + 1 if line[end] == " " else end
    return [*ranges, (start, length)] if start < length or not ranges else ranges


def fitting(text: str, start: int, width: int) -> int:
    """The end of what fits from `start` on into `width` cells."""
    widths = _WIDTHS
    room = width
    for index in range(start, len(text)):
        room -= widths[text[index]]
        if room < 0:
            return index
    return len(text)


class _Widths(dict[str, int]):
    """Cells of a character, found out once."""

    def __missing__(self, character: str) -> int:
        width = self[character] = get_character_cell_size(character)
        return width


_WIDTHS = _Widths()
