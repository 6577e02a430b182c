"""The figures and the table of docs/compatibility.md, made of results."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.upstream_environments.comparison import Comparison
from benchmarks.upstream_environments.differences import EXPLAINED
from benchmarks.upstream_environments.results import Results, Setup
from benchmarks.upstream_environments.words import (
    inspection_in_words,
    is_explained,
    metrics_in_words,
    outcome_in_words,
)

HEAD = (
    "file", "loads", "here", "on atroposlib", "compared", "`serve` here", "here to `run-api`",
    "`serve` on atroposlib", "bodies compared",
)  # fmt: skip

_COMPARED = {
    "process": (Setup.OURS, Setup.UPSTREAM),
    "serve, both to run-api": (Setup.SERVE_OURS_TO_RUN_API, Setup.SERVE_UPSTREAM),
    "serve, each to its own trajectory API": (Setup.SERVE_OURS, Setup.SERVE_UPSTREAM),
}


def figures(files: Sequence[str], results: Results) -> str:
    """The counts over all files."""
    loading = sum((inspection := results.inspection(file)) is not None and inspection.loads for file in files)
    ours, upstream = (_that_ran(files, results, setup) for setup in (Setup.OURS, Setup.UPSTREAM))
    metrics = [words for file in files if (words := _metrics_compared(file, results))]
    lines = [
        f"{loading} of {len(files)} files load",
        f"{len(upstream)} files give groups or metrics on atroposlib, {len(upstream & ours)} of them here",
        f"{len(ours - upstream)} further files give groups or metrics here",
        *(_comparison_figures(what, files, results) for what in _COMPARED),
        f"evaluate: {len(metrics)} files compared, {metrics.count('same metrics')} with the same metrics",
    ]
    return "\n".join(f"- {line}" for line in lines)


def legend() -> str:
    """What the words of the comparison stand for."""
    return "\n".join(f"- {kind}: {meaning}" for kind, meaning in EXPLAINED.items())


def table(files: Sequence[str], results: Results) -> str:
    """A row for each file; a cell is empty when there is no result for it."""
    rows = [HEAD, tuple("---" for _ in HEAD), *(_row(file, results) for file in files)]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


def _that_ran(files: Sequence[str], results: Results, setup: Setup) -> set[str]:
    return {file for file in files if (outcome := results.outcome(file, setup)) and outcome.ran}


def _comparison_figures(what: str, files: Sequence[str], results: Results) -> str:
    found = [comparison for file in files if (comparison := results.comparison(file, *_COMPARED[what]))]
    same = sum(comparison.same_tokens for comparison in found)
    explained = sum(map(is_explained, found))
    return f"{what}: {len(found)} files compared, {same} with the same tokens, {explained} with meant differences alone"


def _row(file: str, results: Results) -> tuple[str, ...]:
    inspection = results.inspection(file)
    cells = {setup: outcome_in_words(outcome) if (outcome := results.outcome(file, setup)) else "" for setup in Setup}
    process, *served = (_compared(results.comparison(file, *setups)) for setups in _COMPARED.values())
    return (
        f"`{file}`",
        inspection_in_words(inspection) if inspection else "",
        cells[Setup.OURS],
        cells[Setup.UPSTREAM],
        process or _metrics_compared(file, results),
        cells[Setup.SERVE_OURS],
        cells[Setup.SERVE_OURS_TO_RUN_API],
        cells[Setup.SERVE_UPSTREAM],
        "; ".join(dict.fromkeys(served)) if any(served) else "",
    )


def _compared(comparison: Comparison | None) -> str:
    if comparison is None:
        return ""
    if not comparison.same_tokens:
        return f"{comparison.paired} of {min(comparison.ours, comparison.upstream)} groups alike"
    # `added` is true of every file, so that it says nothing.
    kinds = [kind for kind in comparison.kinds() if kind != "added"]
    return f"same but {', '.join(kinds)}" if kinds else "same"


def _metrics_compared(file: str, results: Results) -> str:
    ours, upstream = results.outcome(file, Setup.OURS), results.outcome(file, Setup.UPSTREAM)
    # Metrics of an evaluation that asked no model say nothing.
    if ours is None or upstream is None or not (ours.ran and upstream.ran):
        return ""
    return metrics_in_words(ours.metrics, upstream.metrics)
