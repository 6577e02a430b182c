"""Where a token stands for the policy: positions are counted from an anchor, the end of the first turn.

A string of any length then ends, and its answer begins, at the same position, so that what was learned of short strings
holds for longer ones.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from atropos_tui.pocket.layers import Tokens


def anchor_of(prompt: Sequence[int], turn_token: int) -> int:
    """Index of the first token that ends a turn, or of the prompt's last token if none does."""
    return prompt.index(turn_token) if turn_token in prompt else len(prompt) - 1


def positions_of(length: int, anchor: int, reach: int) -> Tokens:
    """Positions (length,) of a sequence: the anchor stands at `reach` - 1, what is out of reach at the rim."""
    return np.clip(np.arange(length) - anchor + reach - 1, 0, 2 * reach - 1)


def room_after(prompt: Sequence[int], turn_token: int, reach: int) -> int:
    """How many tokens can follow the prompt within reach of its anchor; none if the anchor is out of reach itself."""
    anchor = anchor_of(prompt, turn_token)
    return max(0, reach - (len(prompt) - 1 - anchor)) if anchor < reach else 0
