"""`atroposlib.utils.tool_call_parser`: tool calls that a model wrote."""

from atropos_tui.compat.forwarding import forward

forward(
    __name__,
    "atropos_tui.runtime.tool_calls",
)
