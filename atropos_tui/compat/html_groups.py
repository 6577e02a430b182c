"""One group of a file of scored groups as HTML, for scripts that make pages of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atropos_tui.html_page import group_items


def create_html_for_group(group_data: Mapping[str, Any], index: int) -> str:
    """The group, folded, with its number; empty when it has no scores."""
    items = "".join(group_items(group_data, index))
    return f'<details id="group-{index}">\n<summary>Group {index}</summary>\n{items}</details>\n' if items else ""
