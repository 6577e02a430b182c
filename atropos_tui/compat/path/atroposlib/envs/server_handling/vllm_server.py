"""`atroposlib.envs.server_handling.vllm_server`: vLLM servers."""

from atropos_tui.compat.forwarding import forward

forward(
    __name__,
    "atropos_tui.inference.vllm_server",
    "atropos_tui.inference",
)
