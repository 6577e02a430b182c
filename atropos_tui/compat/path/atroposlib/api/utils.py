"""`atroposlib.api.utils`: the groups of a batch."""

from atropos_tui.compat.forwarding import forward

forward(
    __name__,
    "atropos_tui.compat.batches",
)
