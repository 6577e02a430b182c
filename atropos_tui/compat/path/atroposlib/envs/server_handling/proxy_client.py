"""`atroposlib.envs.server_handling.proxy_client`: a client of the managed-server proxy."""

from atropos_tui.compat.forwarding import forward

forward(
    __name__,
    "atropos_tui.inference.proxy_client",
)
