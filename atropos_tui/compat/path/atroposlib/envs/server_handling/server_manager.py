"""`atroposlib.envs.server_handling.server_manager`: all servers behind one."""

from atropos_tui.compat.forwarding import forward

forward(
    __name__,
    "atropos_tui.inference.server_manager",
    "atropos_tui.inference",
)
