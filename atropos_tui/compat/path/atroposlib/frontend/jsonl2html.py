"""`atroposlib.frontend.jsonl2html`: a page of the groups in a file."""

from atropos_tui.compat.forwarding import forward

forward(
    __name__,
    "atropos_tui.html_page",
    "atropos_tui.compat.html_groups",
)
