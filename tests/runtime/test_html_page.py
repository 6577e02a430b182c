"""The page of groups: everything readable on it, nothing of it executable, nothing loaded from elsewhere."""

from __future__ import annotations

import html
import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from atropos_tui.errors import UsageError
from atropos_tui.html_page import generate_html
from tests.runtime.scored_groups import anything, texts, unhurried

CONVERSATION = [{"role": "user", "content": "What is 2+2?"}, {"role": "assistant", "content": "**4**"}]


class Page(HTMLParser):
    """What a browser would find: elements with their attributes, and the text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.source = path.read_text(encoding="utf-8")
        self.feed(self.source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    @property
    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}

    def attribute(self, name: str) -> list[str]:
        return [value for _, attributes in self.elements if (value := attributes.get(name)) is not None]


def page_of(folder: Path, *groups: Any) -> Page:
    source = folder / "groups.jsonl"
    source.write_text("".join(f"{group if isinstance(group, str) else json.dumps(group)}\n" for group in groups))
    return Page(generate_html(source))


def test_groups_and_rollouts_are_named_and_numbered(tmp_path: Path) -> None:
    group = {"messages": [CONVERSATION] * 3, "scores": [1.0, -0.5, 0]}
    page = page_of(tmp_path, group, group)
    assert "<title>Rendered Messages - groups.jsonl</title>" in page.source
    assert "<summary>Group 0</summary>" in page.source
    assert "<summary>Group 1</summary>" in page.source
    assert [value for value in page.attribute("id") if value.startswith("group-1")] == [
        "group-1-item-0", "group-1-item-1", "group-1-item-2",
    ]  # fmt: skip
    assert page.attribute("class").count("item reward-positive") == 2
    assert page.attribute("class").count("item reward-negative") == 2
    assert page.attribute("class").count("item reward-zero") == 2
    assert "<strong>Assistant</strong>" in page.source
    assert "What is 2+2?" in page.text
    assert "**4**" in page.text
    assert "Reward: -0.5" in page.text


def test_text_of_models_stays_text(tmp_path: Path) -> None:
    attack = '</div></details><script>alert(1)</script><img src="http://x/y" onerror=alert(1)>\x1b[31m\x00 &lt;'
    group = {"messages": [[{"role": f"<b>{attack}", "content": attack}]], "scores": [attack]}
    page = page_of(tmp_path, group)
    assert page.tags <= {
        "html", "head", "meta", "title", "style", "body", "h1", "h4", "details", "summary", "div", "p", "strong",
    }  # fmt: skip
    assert not {name for _, attributes in page.elements for name in attributes} & {"src", "href", "onerror"}
    assert "\x1b" not in page.source
    assert "\x00" not in page.source
    assert attack.replace("\x1b", "␛").replace("\x00", "␀") in page.text


def test_the_page_may_load_and_run_nothing(tmp_path: Path) -> None:
    (policy,) = [value for value in page_of(tmp_path).attribute("content") if "default-src" in value]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


@pytest.mark.parametrize(
    ("messages", "shown"),
    [
        (["all of it"], "all of it"),
        ([[{"role": "user", "content": "asked"}]], "asked"),
        ([["bare"]], "bare"),
        ([[{"role": "user", "content": [{"text": "look"}, {"type": "image_url"}]}]], "look\n[image_url]"),
        (["half \ud800 a character"], "half \\ud800 a character"),
        ([[{"role": "assistant", "tool_calls": [{"function": {"name": "add"}}]}]], '"name": "add"'),
        ([[{"content": "whose?"}]], "Unknown"),
        ([[{"role": "user", "content": None}]], "User"),
        (None, "No messages; 3 tokens."),
        ([], "No messages; 3 tokens."),
        ([None], "No messages; 3 tokens."),
        ([7], "7"),
    ],
)  # fmt: skip
def test_messages_may_have_every_form_that_environments_write(tmp_path: Path, messages: Any, shown: str) -> None:
    page = page_of(tmp_path, {"messages": messages, "scores": [0.5], "tokens": [[1, 2, 3]]})
    assert shown in page.text
    assert "Reward: 0.5" in page.text


def test_a_file_without_groups_says_so(tmp_path: Path) -> None:
    assert "No data to display" in page_of(tmp_path).text
    assert "No data to display" in page_of(tmp_path, {"scores": [], "messages": []}).text


def test_lines_that_are_no_groups_are_counted_and_the_others_shown(tmp_path: Path) -> None:
    page = page_of(tmp_path, "{half", "[1]", '{"no": "scores"}', "", {"scores": [1], "messages": ["kept"]})
    assert "3 lines of the file are no groups" in page.text
    assert "Group 0" in page.text
    assert "kept" in page.text


def test_the_page_can_be_written_elsewhere(tmp_path: Path) -> None:
    source = tmp_path / "groups.jsonl"
    source.write_text("")
    assert generate_html(source, tmp_path / "a" / "page.html") == tmp_path / "a" / "page.html"
    assert generate_html(str(source)) == tmp_path / "groups.html"


def test_a_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot make an HTML page of"):
        generate_html(tmp_path / "nothing.jsonl")


@unhurried
@given(
    groups=st.lists(
        st.fixed_dictionaries({"scores": st.lists(anything, max_size=2), "messages": anything, "tokens": anything}),
        max_size=3,
    ),
    content=texts,
)
def test_whatever_a_group_holds_the_page_is_made(
    tmp_path_factory: pytest.TempPathFactory, groups: list[Any], content: str
) -> None:
    readable = {"messages": [[{"role": "user", "content": content}]], "scores": [1.0]}
    folder = tmp_path_factory.mktemp("page")
    page = page_of(folder, *[json.dumps(group, default=str) for group in groups], readable)
    assert html.escape(content.replace("\x1b", "␛").replace("\x00", "␀")) in page.source
    assert page.source.endswith("</html>\n")
