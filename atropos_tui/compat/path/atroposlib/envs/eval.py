"""`atroposlib.envs.eval`: evaluations without an environment."""

from atropos_tui.compat.forwarding import forward

forward(
    __name__,
    "atropos_tui.compat.evaluations",
)
