"""`atroposlib.utils.best_of_n_selection`: greedy choice among alternatives."""

from atropos_tui.compat.forwarding import forward

forward(
    __name__,
    "atropos_tui.runtime.selection",
)
