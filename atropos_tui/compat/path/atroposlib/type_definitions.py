"""`atroposlib.type_definitions`: items, messages, histories, and what evaluations write."""

from atropos_tui.compat.forwarding import forward

forward(
    __name__,
    "atropos_tui.runtime.types",
    "atropos_tui.compat.evaluation_types",
)
