"""`atroposlib.envs.base`: the environment's base class, its config, scored groups and server configs."""

from atropos_tui.compat.forwarding import forward

forward(
    __name__,
    "atropos_tui.runtime.base_env",
    "atropos_tui.runtime.config",
    "atropos_tui.runtime.types",
    "atropos_tui.html_page",
    "atropos_tui.inference",
    renamed={"OpenaiConfig": "APIServerConfig"},
)
