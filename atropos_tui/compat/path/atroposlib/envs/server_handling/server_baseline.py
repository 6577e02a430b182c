"""`atroposlib.envs.server_handling.server_baseline`: configs, and the base class of servers."""

from atropos_tui.compat.forwarding import forward

forward(
    __name__,
    "atropos_tui.inference.config",
    "atropos_tui.inference.server",
    "atropos_tui.inference.permits",
    renamed={"AsyncSemWithAdaptiveWeight": "Permits"},
)
