"""A file of groups as one HTML page that needs nothing else: no scripts, no fonts, nothing loaded from anywhere.

All text comes from models and environments, so all of it is escaped, and what would be invisible is shown.
"""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from atropos_tui.errors import UsageError

NOTHING = "<p>No data to display: the file holds no group that can be shown.</p>"

_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em; }}
details {{ border: 1px solid #8886; border-radius: 6px; margin: .5em 0; }}
summary {{ cursor: pointer; padding: .5em 1em; }}
.item {{ border-left: 4px solid #888; margin: 1em; padding: 0 1em; }}
.reward-positive {{ border-color: #2a8f4d; }}
.reward-negative {{ border-color: #c0392b; }}
.text {{ white-space: pre-wrap; overflow-wrap: anywhere; unicode-bidi: isolate; font-family: ui-monospace, monospace; }}
.note {{ opacity: .7; }}
</style>
</head>
<body>
<h1>{title}</h1>
"""


def generate_html(input_path: Path | str, output_path: Path | str | None = None) -> Path:
    """Write the page of a JSONL file of groups, beside it with the suffix `.html` by default, and return its path.

    Lines that are no groups are counted at the end of the page. Raises UsageError when a file cannot be opened.
    """
    source = Path(input_path)
    page = source.with_suffix(".html") if output_path is None else Path(output_path)
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
        with (
            source.open(encoding="utf-8", errors="replace") as lines,
            page.open("w", encoding="utf-8", errors="backslashreplace") as out,
        ):
            _write_page(lines, out, f"Rendered Messages - {source.name}")
    except OSError as error:
        raise UsageError(f"cannot make an HTML page of {source}: {error.strerror}", "check the two paths") from error
    return page


def _write_page(lines: TextIO, out: TextIO, title: str) -> None:
    """Group after group, so that memory does not grow with the file."""
    out.write(_HEAD.format(title=_escape(title)))
    shown = unreadable = 0
    for line in lines:
        if not line.strip():
            continue
        group = _read(line)
        if group is None:
            unreadable += 1
        elif items := list(group_items(group, shown)):
            out.write(f"<details>\n<summary>Group {shown}</summary>\n{''.join(items)}</details>\n")
            shown += 1
    if not shown:
        out.write(NOTHING + "\n")
    if unreadable:
        out.write(f'<p class="note">{unreadable} lines of the file are no groups and are not shown.</p>\n')
    out.write("</body>\n</html>\n")


def _read(line: str) -> Mapping[str, Any] | None:
    try:
        group = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return group if isinstance(group, dict) and "scores" in group else None


def group_items(group: Mapping[str, Any], number: int) -> Iterator[str]:
    """The rollouts of a group as HTML; a rollout that has no messages is shown with the number of its tokens."""
    scores, messages, tokens = (_list(group.get(field)) for field in ("scores", "messages", "tokens"))
    for index, score in enumerate(scores):
        if index < len(messages) and messages[index]:
            text = "".join(_conversation(messages[index]))
        else:
            count = len(_list(tokens[index])) if index < len(tokens) else 0
            text = f'<p class="note">No messages; {count} tokens.</p>\n'
        yield (
            f'<div class="item {_score_class(score)}" id="group-{number}-item-{index}">\n<h4>Content {index}</h4>\n'
            f"{text}<p><strong>Reward:</strong> {_escape(score)}</p>\n</div>\n"
        )


def _conversation(messages: Any) -> Iterator[str]:
    """One block a message. A bare text is shown as it is."""
    for message in messages if isinstance(messages, list) else [messages]:
        if not isinstance(message, Mapping):
            yield f'<div class="text">{_escape(message)}</div>\n'
            continue
        role = _escape(str(message.get("role", "unknown")).capitalize())
        yield f'<p><strong>{role}</strong>:</p>\n<div class="text">{_escape(_content(message))}</div>\n'


def _content(message: Mapping[str, Any]) -> str:
    """The text of a message, with parts that are no text named, and its tool calls as JSON."""
    content = message.get("content")
    parts = content if isinstance(content, list) else [content]
    texts = [_part(part) for part in parts if part is not None]
    if message.get("tool_calls"):
        texts.append(json.dumps(message["tool_calls"], ensure_ascii=False, indent=2))
    return "\n".join(texts)


def _part(part: Any) -> str:
    if not isinstance(part, Mapping):
        return str(part)
    return part["text"] if isinstance(part.get("text"), str) else f"[{part.get('type', 'unknown part')}]"


def _score_class(score: Any) -> str:
    if not isinstance(score, int | float):
        return ""
    return "reward-positive" if score > 0 else "reward-negative" if score < 0 else "reward-zero"


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _escape(value: Any) -> str:
    """Escaped text. Control characters become their pictures; HTML could not hold them."""
    return html.escape(str(value).translate(_PICTURES))


_PICTURES = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"} | {0x7F: "\u2421"}
