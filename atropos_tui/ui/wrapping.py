"""Long lines cut to the width of the screen, before anything lays them out."""

from __future__ import annotations

from rich.cells import cell_len, chop_cells


def wrapped(line: str, width: int) -> list[str]:
    """`line` in parts of at most `width` cells, broken at a blank where one is near; only such blanks are left out.

    The line must be free of control characters (`text_safety.visible`).
    """
    if width < 1:
        return []
    if cell_len(line) <= width:
        return [line]
    parts: list[str] = []
    start = 0
    while start < len(line):
        part = _first_part(line[start : start + width * 4], width)
        parts.append(part)
        start += len(part)
        if line[start : start + 1] == " ":
            start += 1
    return parts


def _first_part(line: str, width: int) -> str:
    """As much as fits, back to the last blank in its second half."""
    if cell_len(line) <= width:
        return line
    fitting = line[:width] if line.isascii() else chop_cells(line, width)[0]
    if not fitting:
        return line[0]  # a wide character in a column of one cell
    blank = fitting.rfind(" ")
    if line[len(fitting)] == " " or blank < len(fitting) // 2:
        return fitting
    return fitting[:blank]
