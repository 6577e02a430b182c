"""Turns of the role "agent", which game environments use: only what was sampled is trained on."""

from __future__ import annotations

from pathlib import Path

from atropos_tui.runtime.tokenizer import load_tokenizer
from atropos_tui.runtime.tokens import tokenize_for_trainer

TEMPLATE = (
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}<eos>{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


def test_the_header_of_an_agents_turn_is_not_trained_on(tokenizer_dir: Path):
    tokenizer = load_tokenizer(str(tokenizer_dir))
    tokenizer.chat_template = TEMPLATE
    chat = [
        {"role": "system", "content": "play"}, {"role": "environment", "content": "6 of hearts"},
        {"role": "agent", "content": "stick"}, {"role": "environment", "content": "won"},
        {"role": "agent", "content": "again"},
    ]  # fmt: skip
    for all_turns, trained in ((False, "again<eos>"), (True, "stick<eos>again<eos>")):
        tokenized = tokenize_for_trainer(tokenizer, chat, train_on_all_assistant_turns=all_turns)
        assert tokenizer.decode([mask for mask in tokenized["masks"] if mask != -100]) == trained
