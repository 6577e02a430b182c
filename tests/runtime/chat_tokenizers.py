"""Tokenizers made on the spot, with chat templates of the kinds that models have."""

from __future__ import annotations

from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

SPECIALS = ["<|im_start|>", "<|im_end|>", "<s>", "</s>"]
# "ĊĊ" is two line ends: a prompt that ends with one merges with content that begins with one.
MERGES = [("Ċ", "Ċ"), ("h", "e"), ("t", "h"), ("a", "n")]

_TURN = "<|im_start|>{{ m['role'] }}\n{{ m['content'] or '' }}<|im_end|>\n"
_ASK = "{% if add_generation_prompt %}<|im_start|>assistant\n"

TEMPLATES = {
    "chatml": "{% for m in messages %}" + _TURN + "{% endfor %}" + _ASK + "{% endif %}",
    # The generation prompt is longer than what the turn then starts with.
    "no thinking": "{% for m in messages %}" + _TURN + "{% endfor %}" + _ASK + "<think>\n\n</think>\n\n{% endif %}",
    # The generation prompt opens a block that the content repeats.
    "thinking": "{% for m in messages %}" + _TURN + "{% endfor %}" + _ASK + "<think>\n{% endif %}",
    # Thinking of turns before the last question is left out, as Qwen 3 does.
    "forgets thinking": (
        "{% set ns = namespace(last=-1) %}{% for m in messages %}{% if m['role'] == 'user' %}"
        "{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
        "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
        "{% if m['role'] == 'assistant' %}{% set parts = m['content'].split('</think>') %}"
        "{% if loop.index0 > ns.last %}<think>\n{{ parts[0].split('<think>')[-1].strip() if parts|length > 1 else '' }}"
        "\n</think>\n\n{% endif %}{{ parts[-1].lstrip('\\n') }}"
        "{% else %}{{ m['content'] }}{% endif %}<|im_end|>\n{% endfor %}" + _ASK + "{% endif %}"
    ),
    # Ends a turn of the assistant with the end of sequence and nothing else.
    "inst": (
        "<s>{% for m in messages %}{% if m['role'] == 'assistant' %}{{ m['content'] }}</s>"
        "{% else %}[INST]{{ m['content'] }}[/INST]{% endif %}{% endfor %}"
    ),
    "one end": "{% for m in messages %}[{{ m['role'] }}]{{ m['content'] }}{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% else %}</s>{% endif %}",
    "needs a question": (
        "{% if messages | selectattr('role', 'equalto', 'user') | list | length == 0 %}"
        "{{ raise_exception('no user query') }}{% endif %}"
        "{% for m in messages %}" + _TURN + "{% endfor %}" + _ASK + "{% endif %}"
    ),
    "tools": (
        "{% for m in messages %}<|im_start|>{{ 'user' if m['role'] == 'tool' else m['role'] }}\n"
        "{% if m['role'] == 'tool' %}<tool_response>{{ m['content'] }}</tool_response>"
        "{% else %}{{ m['content'] or '' }}{% for call in m['tool_calls'] or [] %}"
        "<tool_call>{{ call['function']['name'] }}</tool_call>{% endfor %}{% endif %}<|im_end|>\n{% endfor %}"
        + _ASK + "{% endif %}"
    ),
    "drops replies": "{% for m in messages %}{% if m['role'] != 'assistant' %}" + _TURN + "{% endif %}{% endfor %}",
}  # fmt: skip


def chat_tokenizer(template: str) -> Any:
    """A tokenizer of bytes and a few merges with one of `TEMPLATES`."""
    vocabulary = {piece: index for index, piece in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    for left, right in MERGES:
        vocabulary[left + right] = len(vocabulary)
    core = Tokenizer(models.BPE(vocab=vocabulary, merges=MERGES))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens([AddedToken(special, special=True) for special in SPECIALS])
    ends_with_s = template in ("inst", "one end")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, eos_token="</s>" if ends_with_s else "<|im_end|>", additional_special_tokens=SPECIALS
    )
    tokenizer.chat_template = TEMPLATES[template]
    tokenizer.name_or_path = f"a tokenizer with the template {template!r}"
    return tokenizer
