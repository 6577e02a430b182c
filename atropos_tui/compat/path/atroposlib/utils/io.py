"""`atroposlib.utils.io`: reading HTTP answers."""

from atropos_tui.compat.forwarding import forward

forward(
    __name__,
    "atropos_tui.compat.http_answers",
)
