"""`atropos-tui check FILE…`: whether environment files load here, and what they need to run."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import ValidationError

from atropos_tui.compat.inspection import TREATED_DIFFERENTLY, Inspection
from atropos_tui.runtime.loading import split_spec

LOAD_SECONDS = 120.0
Form = Literal["text", "markdown", "json"]
MARKDOWN_COLUMNS = ("file", "class", "result", "own config fields", "servers", "needs", "treated differently")


def check_files(files: Sequence[str], *, form: Form = "text") -> int:
    """Print what each file is and needs: 0 when all load, 1 when one does not. Raises UsageError for no such file.

    As text, as rows of a Markdown table, or as one JSON object a line.
    """
    for file in files:
        split_spec(file)
    written = {"text": text_of, "markdown": markdown_row, "json": json_line}[form]
    loading = 0
    if form == "markdown":
        sys.stdout.write(_markdown_row(MARKDOWN_COLUMNS) + _markdown_row(["---"] * len(MARKDOWN_COLUMNS)))
    for file in files:
        inspection = inspect_in_process(file)
        loading += inspection.loads
        sys.stdout.write(written(inspection))
        sys.stdout.flush()
    if form == "text":
        sys.stdout.write(f"{loading} of {len(files)} files load\n")
    return 0 if loading == len(files) else 1


def inspect_in_process(file: str, seconds: float = LOAD_SECONDS) -> Inspection:
    """Load the file in a process of its own, which ends with everything that it started."""
    process = subprocess.Popen(
        [sys.executable, "-m", "atropos_tui.compat.inspection", file],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        told, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return Inspection(file=file, error=f"the import took longer than {seconds:g} s", remedy="mend the file")
    finally:
        _end_session(process)
    try:
        return Inspection.model_validate_json(told)
    except ValidationError:
        last_words = errors.decode(errors="replace").strip().splitlines()[-1:] or ["no word"]
        how = f"the import ended the process with status {process.returncode}: {last_words[0]}"
        return Inspection(file=file, error=how, remedy="mend the file")


def lines_of(inspection: Inspection) -> Iterator[str]:
    """One file, as a table of what is known of it."""
    yield f"{inspection.file}: {'loads' if inspection.loads else 'does not load'}"
    rows = {
        "class": inspection.environment,
        "config": _config(inspection),
        "servers": "; ".join(inspection.servers) or ("none" if inspection.loads else ""),
        "missing": ", ".join(inspection.missing_packages),
        "needs": "; ".join(needs(inspection)),
        "differs": "; ".join(f"{name}: {TREATED_DIFFERENTLY[name]}" for name in inspection.overrides),
        "error": inspection.error,
        "remedy": inspection.remedy,
    }
    yield from (f"  {name:<8} {text}" for name, text in rows.items() if text)


def text_of(inspection: Inspection) -> str:
    """One file, as wide as the terminal, and an empty line."""
    wrapper = textwrap.TextWrapper(
        shutil.get_terminal_size((120, 24)).columns, subsequent_indent=" " * 11, break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    return "\n".join(wrapper.fill(line) for line in lines_of(inspection)) + "\n\n"


def json_line(inspection: Inspection) -> str:
    """One file: the fields of Inspection, and `loads`."""
    return json.dumps({"loads": inspection.loads, **inspection.model_dump(mode="json")}) + "\n"


def markdown_row(inspection: Inspection) -> str:
    """One file, as a row below `MARKDOWN_COLUMNS`."""
    missing = [f"packages {', '.join(inspection.missing_packages)}"] if inspection.missing_packages else []
    cells = [
        f"`{inspection.file}`",
        inspection.environment,
        "loads" if inspection.loads else inspection.error,
        ", ".join(inspection.config_fields),
        "; ".join(inspection.servers),
        "; ".join([*missing, *needs(inspection)]),
        ", ".join(inspection.overrides),
    ]
    return _markdown_row(cells)


def needs(inspection: Inspection) -> list[str]:
    """What a run of the file needs besides packages, as far as its source tells."""
    told = []
    if inspection.data_sets:
        told.append(f"data sets {', '.join(inspection.data_sets)}")
    if inspection.missing_keys:
        told.append(f"environment variables {', '.join(inspection.missing_keys)}")
    if inspection.uses_gpu:
        told.append("a GPU, or a fallback of its own")
    return told


def _markdown_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in cells) + " |\n"


def _config(inspection: Inspection) -> str:
    if not inspection.loads:
        return ""
    own = ", ".join(inspection.config_fields)
    return f"{inspection.config}, {f'own fields {own}' if own else 'no fields of its own'}"


def _end_session(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
