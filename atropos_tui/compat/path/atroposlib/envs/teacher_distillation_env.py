"""`atroposlib.envs.teacher_distillation_env`: environments that take logprobs from a teacher."""

from atropos_tui.compat.forwarding import forward

forward(
    __name__,
    "atropos_tui.compat.teacher_distillation",
)
