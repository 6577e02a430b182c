"""`atroposlib.envs.server_handling.trl_vllm_server`: TRL's vLLM server."""

from atropos_tui.compat.forwarding import forward

forward(
    __name__,
    "atropos_tui.inference.trl_server",
    "atropos_tui.inference",
)
