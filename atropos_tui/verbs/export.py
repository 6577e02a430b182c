"""`atropos-tui export`: the groups of a record as files for other programs.

Exit status: 0 written, 1 the record is damaged or the disk full, 2 wrong use.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from atropos_tui.arguments import verb_parser
from atropos_tui.errors import AtroposError, UsageError
from atropos_tui.ledger.outcomes import Outcome
from atropos_tui.monitor.group_detail import GroupDetail
from atropos_tui.monitor.group_filter import parse_terms
from atropos_tui.monitor.group_query import ALL_GROUPS
from atropos_tui.monitor.group_store import GroupFilter
from atropos_tui.monitor.notes import Notes
from atropos_tui.monitor.notes_file import notes_beside
from atropos_tui.monitor.recorded.jsonl_file import JsonlFile
from atropos_tui.monitor.recorded.scored_groups import write_group
from atropos_tui.monitor.run_file.reader import RunFileReader
from atropos_tui.verbs.decoding import LazyTokenizer, TokenizerOfRun
from atropos_tui.verbs.parquet import require_pyarrow, write_parquet
from atropos_tui.verbs.recordings import RECORDING_HELP, is_recorded_run, recording
from atropos_tui.verbs.training_data import Choice, dpo_rows, sft_rows

FORMATS = ("jsonl", "html", "sft", "dpo", "parquet")
# The others may give several rows a group.
_OF_GROUPS = ("jsonl", "html")
_MARGIN = {"sft": 0.0, "dpo": 0.5}

_EPILOG = """\
formats:
  jsonl   one group a line, as atroposlib's data_path_to_save_groups writes it
  html    one page that needs nothing else
  sft     the best sequences of each group, as atroposlib's sft-gen writes them
  dpo     pairs of a good and a bad sequence, as atroposlib's dpo-gen writes them
  parquet one row a rollout with all that was recorded of it (needs the extra `parquet`)"""


def main(argv: Sequence[str]) -> int:
    parser = verb_parser("export", "Write the groups of a run or of a JSONL file.", _EPILOG)
    parser.add_argument("run", metavar="RUN", help=RECORDING_HELP)
    parser.add_argument("--format", required=True, choices=FORMATS, help="see below")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="a new file (default: standard output)")
    parser.add_argument(
        "--filter", default="", metavar="TERMS", help="only groups of a filter as on the screen: score<0 bookmarked"
    )
    parser.add_argument("--outcome", choices=[str(outcome) for outcome in Outcome], help="only groups that ended so")
    parser.add_argument("--reason", default="", help="only groups that ended for this reason")
    parser.add_argument("--search", default="", metavar="WORDS", help="only groups whose messages have these words")
    parser.add_argument("--score-from", type=float, metavar="X", help="the group's mean score is at least this")
    parser.add_argument("--score-to", type=float, metavar="X", help="the group's mean score is at most this")
    parser.add_argument("--step-from", type=int, metavar="N", help="the trainer was at this step or later")
    parser.add_argument("--step-to", type=int, metavar="N", help="the trainer was at this step or earlier")
    parser.add_argument("--tokenizer", default="", metavar="NAME", help="for sequences without messages")
    parser.add_argument("--most-per-group", type=int, default=3, metavar="N", help="sft, dpo: how many (default 3)")
    parser.add_argument("--allow-negative-scores", action="store_true", help="sft, dpo: scores of 0 and less too")
    parser.add_argument(
        "--score-margin", type=float, metavar="X",
        help="above the group's worst (sft, default 0) or the other of the pair (dpo, default 0.5)",
    )  # fmt: skip
    args = parser.parse_args(argv)
    path = recording(args.run)
    notes = Notes(notes_beside(path))
    notes.read()
    query = notes.resolved(parse_terms(args.filter), ALL_GROUPS.order)
    wanted = replace(
        GroupFilter.of(query, outcome=args.outcome or "", reason=args.reason, search=args.search),
        score_from=args.score_from, score_to=args.score_to, step_from=args.step_from, step_to=args.step_to,
    )  # fmt: skip
    margin = _MARGIN.get(args.format, 0.0) if args.score_margin is None else args.score_margin
    choice = Choice(args.most_per_group, args.allow_negative_scores, margin)
    export = _Export(path, wanted, args.tokenizer)
    written = export.write(args.format, choice, args.output)
    sys.stderr.write(f"{written} {'groups' if args.format in _OF_GROUPS else 'rows'}")
    sys.stderr.write(
        f", {export.without_content} groups without contents left out\n" if export.without_content else "\n"
    )
    return 0


class _Export:
    """Groups one after the other, so that memory does not grow with the record."""

    def __init__(self, path: Path, wanted: GroupFilter, tokenizer: str) -> None:
        self.without_content = 0
        self._wanted = wanted
        self._record: RunFileReader | JsonlFile
        if is_recorded_run(path):
            self._record = RunFileReader(path)
            self._tokenizer: LazyTokenizer = TokenizerOfRun(path, tokenizer)
        else:
            self._record = JsonlFile(path)
            self._record.read_on()
            self._tokenizer = LazyTokenizer(lambda: tokenizer)

    def write(self, kind: str, choice: Choice, output: Path | None) -> int:
        """How many lines, rows, or groups of a page were written. Raises UsageError when the file is there already."""
        if kind == "parquet":
            require_pyarrow()
        try:
            with _opened(output) as out:
                if kind == "html":
                    return self._write_page(out)
                if kind == "parquet":
                    return write_parquet(self._details(), out)
                return _write_lines(self._rows(kind, choice), out)
        except FileExistsError:
            raise UsageError(f"{output} is there already", "choose another --output") from None
        except OSError as error:
            raise AtroposError(f"cannot write {output or 'to standard output'}: {error.strerror}") from error

    def _rows(self, kind: str, choice: Choice) -> Iterator[dict[str, Any]]:
        for detail in self._details():
            if kind == "jsonl":
                yield write_group(detail.rollouts)
            elif kind == "sft":
                yield from sft_rows(detail.rollouts, choice, self._tokenizer.text)
            else:
                yield from dpo_rows(detail.rollouts, choice, self._tokenizer.text)

    def _details(self) -> Iterator[GroupDetail]:
        """Oldest first, those that have contents."""
        for group_id in self._record.group_ids(self._wanted):
            group = self._record.find(group_id)
            if group is None or not group.rollouts:
                self.without_content += 1
            else:
                yield group.detail(lambda ids: [])

    def _write_page(self, out: BinaryIO) -> int:
        from atropos_tui.html_page import generate_html

        with tempfile.TemporaryDirectory(prefix="atropos-tui-export-") as directory:
            lines = Path(directory) / "groups.jsonl"
            with lines.open("wb") as file:
                written = _write_lines(self._rows("jsonl", Choice()), file)
            with generate_html(lines).open("rb") as page:
                while chunk := page.read(1 << 20):
                    out.write(chunk)
        return written


@contextmanager
def _opened(output: Path | None) -> Iterator[BinaryIO]:
    """A new file, which goes again when it could not be written whole; or standard output."""
    if output is None:
        yield sys.stdout.buffer
        return
    with output.open("xb") as file:
        try:
            yield file
        except BaseException:
            output.unlink(missing_ok=True)
            raise


def _write_lines(rows: Iterator[dict[str, Any]], out: BinaryIO) -> int:
    written = 0
    for row in rows:
        out.write(orjson.dumps(row) + b"\n")
        written += 1
    return written
