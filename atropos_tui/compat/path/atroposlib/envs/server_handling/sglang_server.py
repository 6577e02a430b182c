"""`atroposlib.envs.server_handling.sglang_server`: SGLang servers."""

from atropos_tui.compat.forwarding import forward

forward(
    __name__,
    "atropos_tui.inference.sglang_server",
    "atropos_tui.inference",
)
