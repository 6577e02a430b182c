"""What holds for every tracked sequence."""

from __future__ import annotations

from atropos_tui.inference.sequence import MASKED, NOT_SAMPLED, SequenceNode


def check_node(node: SequenceNode) -> None:
    """Equal lengths, the sentinel exactly where masked, and the mask the token itself elsewhere."""
    pairs = zip(node.tokens, node.logprobs, strict=True)
    assert node.masked_tokens == [MASKED if logprob == NOT_SAMPLED else token for token, logprob in pairs]
