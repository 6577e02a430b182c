"""`atroposlib.envs.server_handling.tool_call_translator`: tool calls as text and as objects."""

from atropos_tui.compat.forwarding import forward

forward(
    __name__,
    "atropos_tui.compat.tool_call_translator",
)
