"""`atroposlib.utils.message_history_utils`: keeping long episodes short."""

from atropos_tui.compat.forwarding import forward

forward(
    __name__,
    "atropos_tui.runtime.message_history",
)
