"""The themes that the screen can have: the project's, and beside or instead of them the user's own."""

from __future__ import annotations

from collections.abc import Iterable

from atropos_tui.ui.themes import Theme, load_theme, shipped_theme_files


class Looks:
    """Themes by name. Of the project's, a file is read when its theme is first asked for: one start needs one."""

    def __init__(self, own: Iterable[Theme]) -> None:
        self._files = shipped_theme_files()
        self._read = {theme.name: theme for theme in own}

    @property
    def names(self) -> list[str]:
        """The default first, the user's own last."""
        return list(dict.fromkeys((*self._files, *self._read)))

    def __getitem__(self, name: str) -> Theme:
        if name not in self._read:
            self._read[name] = load_theme(self._files[name])
        return self._read[name]

    def take_in(self, theme: Theme) -> None:
        """From now on this is the theme of its name."""
        self._read[theme.name] = theme
