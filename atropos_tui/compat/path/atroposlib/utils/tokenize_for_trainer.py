"""`atroposlib.utils.tokenize_for_trainer`: chats as tokens and masks."""

from atropos_tui.compat.forwarding import forward

forward(
    __name__,
    "atropos_tui.runtime.tokens",
)
