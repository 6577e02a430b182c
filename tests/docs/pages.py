"""What the documentation tells people to type."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "envs" / "README.md", *sorted((ROOT / "docs").glob("*.md")))

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Command:
    page: str
    text: str


def commands() -> Iterator[Command]:
    """Every line of every `sh` block that is no script, continued lines joined and comments taken away."""
    for page in PAGES:
        for language, block in _BLOCK.findall(page.read_text(encoding="utf-8")):
            if language != "sh" or block.startswith("#!"):
                continue
            for line in block.replace("\\\n", " ").splitlines():
                text = " ".join(re.sub(r"(^|\s)#.*", "", line).split())
                if text:
                    yield Command(page.relative_to(ROOT).as_posix(), text)


def code_blocks(page: str, language: str, mark: str) -> list[str]:
    """The blocks of a language that follow the comment `<!-- mark -->`."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"<!-- {mark} -->\n```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def links(page: Path) -> list[str]:
    """Where its links to files lead, without what follows a `#`."""
    found = re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8"))
    return [link.split("#")[0] for link in found if not link.startswith(("http", "#"))]
