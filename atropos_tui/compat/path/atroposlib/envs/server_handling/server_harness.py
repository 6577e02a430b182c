"""`atroposlib.envs.server_handling.server_harness`: the offline stand-in for servers."""

from atropos_tui.compat.forwarding import forward

forward(
    __name__,
    "atropos_tui.inference.server_harness",
)
