"""`atroposlib.utils.advantages`: advantages from rewards."""

from atropos_tui.compat.forwarding import forward

forward(
    __name__,
    "atropos_tui.compat.advantages",
)
