"""`atroposlib.envs.server_handling.managed_server`: servers that track the sequences they sample."""

from atropos_tui.compat.forwarding import forward

forward(
    __name__,
    "atropos_tui.inference.managed_server",
    "atropos_tui.inference.dummy_managed_server",
    "atropos_tui.inference",
)
