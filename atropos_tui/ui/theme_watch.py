"""The user's themes while the screen is open: a file that is saved shows at once, a broken one says what is wrong."""

from __future__ import annotations

from pathlib import Path

from atropos_tui.errors import UsageError
from atropos_tui.ui.themes import Theme, load_theme
from atropos_tui.ui.user_files import theme_files

LOOK_SECONDS = 1.0


class ThemeWatch:
    """Looks at the themes of a configuration directory. Blocks, for as long as reading a few small files takes."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._seen = self._stamps()

    def changed(self) -> list[Theme | UsageError]:
        """Of each file that is new or was changed since the last call, its theme or its fault."""
        stamps = self._stamps()
        changed = [path for path, stamp in stamps.items() if self._seen.get(path) != stamp]
        self._seen = stamps
        return [_read(path) for path in changed]

    def _stamps(self) -> dict[Path, tuple[int, int]]:
        """When each file was last written, and its size."""
        stamps = {}
        for path in theme_files(self._directory):
            try:
                stat = path.stat()
            except OSError:
                continue  # gone since it was listed; an editor that saves by renaming does that
            stamps[path] = (stat.st_mtime_ns, stat.st_size)
        return stamps


def _read(path: Path) -> Theme | UsageError:
    try:
        return load_theme(path)
    except UsageError as error:
        return error
