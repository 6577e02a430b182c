"""`atroposlib.envs.server_handling.openai_server`: OpenAI-compatible servers."""

from atropos_tui.compat.forwarding import forward

forward(
    __name__,
    "atropos_tui.inference.openai_server",
    "atropos_tui.inference",
)
