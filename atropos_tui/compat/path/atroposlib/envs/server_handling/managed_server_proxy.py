"""`atroposlib.envs.server_handling.managed_server_proxy`: managed servers over HTTP."""

from atropos_tui.compat.forwarding import forward

forward(
    __name__,
    "atropos_tui.inference.managed_server_proxy",
    "atropos_tui.inference",
)
