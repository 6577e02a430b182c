"""How `benchmarks.upstream_environments` runs files and tells of it: replies, stand-in rows, the proxy, the table."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from benchmarks.upstream_environments.fake_server import serving
from benchmarks.upstream_environments.recording_api import Recording, recording_app
from benchmarks.upstream_environments.replies import prompt_of, reply
from benchmarks.upstream_environments.results import Results, Setup
from benchmarks.upstream_environments.runs import Outcome, last_words
from benchmarks.upstream_environments.stand_ins.stand_in_rows import COLUMNS, ROWS, rows_of
from benchmarks.upstream_environments.subjects import environment_files, is_evaluation, own_flags
from benchmarks.upstream_environments.table import figures, table

SUM = "What is 4 plus 9?"


@pytest.mark.parametrize(
    ("prompt", "right", "wrong"),
    [
        (SUM, "\\boxed{13}", "\\boxed{14}"),
        (f"{SUM} (earlier: What is 1 plus 1?) {SUM}", "<answer>13</answer>", "<answer>14</answer>"),
        (f"{SUM}\nA. 13\nB. 14", "The best answer is A", "The best answer is B"),
        (f"{SUM} Write <reversed_text>", "<reversed_text>?9 sulp 4 si tahW<", "<reversed_text>What is 4"),
        (f"{SUM} Use <tool_call>", '{"a": 4, "b": 9}', '{"a": 4, "b": 99}'),
        ("Hit or stick? <tool_call>", '"action": "stick"', '"action": "hit"'),
    ],
)
def test_even_choices_are_right_and_odd_ones_wrong(prompt: str, right: str, wrong: str):
    assert right in reply(prompt, 0)
    assert wrong in reply(prompt, 1)
    assert reply(prompt, 2) == reply(prompt, 2)


def test_the_prompt_of_a_chat_is_the_text_of_its_messages():
    parts = [{"type": "text", "text": SUM}, {"type": "image_url", "image_url": {"url": "data:"}}]
    assert prompt_of([{"role": "system", "content": None}, {"role": "user", "content": parts}]).strip() == SUM


@pytest.mark.parametrize("name", [name for name in COLUMNS if name not in ("clevr", "clock", "ocr-vqa")])
def test_each_stand_in_has_its_rows(name: str):
    rows = rows_of(f"somebody/{name}")
    assert len(rows) == ROWS
    assert rows == rows_of(name.upper())
    assert json.dumps(rows)


def test_a_data_set_without_a_stand_in_is_named():
    with pytest.raises(ValueError, match="'somebody/birds'"):
        rows_of("somebody/birds")


def test_the_environment_files_of_a_checkout_are_those_that_derive_from_its_base_class(tmp_path: Path):
    folder = tmp_path / "environments"
    (folder / "games").mkdir(parents=True)
    (folder / "base.py").write_text("from atroposlib.envs.base import BaseEnv\nclass Game(BaseEnv): ...\n")
    (folder / "games" / "chess.py").write_text("import base\nclass Chess(base.Game): ...\n")
    (folder / "games" / "copy.py").write_text("import base\nclass Chess(base.Game): ...\n")
    (folder / "rules.py").write_text("class Rules: ...\n")
    (folder / "unreadable.py").write_text("class (\n")
    assert environment_files(tmp_path) == ["base.py", "games/chess.py"]


def test_evaluations_are_known_by_their_folder_and_do_without_thinking():
    assert is_evaluation("eval_environments/drop_eval.py")
    assert not is_evaluation("gsm8k_server.py")
    assert own_flags("eval_environments/drop_eval.py", "http://x", "m") == ("--env.thinking_mode", "false")
    assert own_flags("gsm8k_server.py", "http://x", "m") == ()
    assert "--teacher.base_url" in own_flags("gsm8k_server_teacher_distill.py", "http://x", "m")


def test_the_proxy_passes_everything_on_and_keeps_the_groups():
    asked: list[str] = []

    async def answer(request: Request) -> JSONResponse:
        asked.append(f"{request.method} {request.url.path}?{request.url.query}")
        refused = request.url.path == "/scored_data_list"
        return JSONResponse({"path": request.url.path}, 422 if refused else 200)

    recording = Recording()
    api = Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])])
    with (
        serving(api) as api_url,
        serving(recording_app(api_url, recording)) as url,
        httpx.Client(base_url=url, timeout=60) as http,
    ):
        assert http.get("/batch", params={"n": 1}).json() == {"path": "/batch"}
        http.post("/register-env", json={"desired_name": "x"})
        packed = gzip.compress(json.dumps({"tokens": [[1]]}).encode())
        http.post("/scored_data", content=packed, headers={"content-encoding": "gzip"})
        assert http.post("/scored_data_list", json=[{"tokens": [[2]]}, {"tokens": [[3]]}]).status_code == 422
    assert asked == ["GET /batch?n=1", "POST /register-env?", "POST /scored_data?", "POST /scored_data_list?"]
    assert recording.registrations() == [{"desired_name": "x"}]
    assert recording.groups() == [{"tokens": [[1]]}, {"tokens": [[2]]}, {"tokens": [[3]]}]
    assert recording.refusals() == 1


def test_the_last_words_of_a_run_that_was_ended_name_its_error():
    log = "a\nValueError: b\nstopped\n\n"
    assert last_words(log, ended_here=False) == "stopped"
    assert last_words(log, ended_here=True) == "ValueError: b"
    assert last_words("a\n", ended_here=True) == "a"
    assert last_words("", ended_here=True) == ""


def test_the_table_tells_what_there_is_a_result_for(tmp_path: Path):
    results = Results(tmp_path)
    scored = {"tokens": [[1]], "masks": [[1]], "scores": [1.0]}
    for setup, fields in ((Setup.OURS, {"images": None}), (Setup.UPSTREAM, {"images": []})):
        outcome = Outcome("a/env.py", setup, "process", status=0, groups=[scored | fields])
        outcome.save(results.emptied("a/env.py", setup))
    last = "2026-11-29 10:20:30,400 ERROR a | b in /home/somebody/environments/b.py (/usr/lib/c.py) `d`" + "!" * 100
    Outcome("b.py", "ours", "process", status=1, last_line=last).save(results.emptied("b.py", Setup.OURS))
    for setup in (Setup.OURS, Setup.UPSTREAM):
        metrics = {"accuracy": 0.5, "time_seconds": 1.0 if setup is Setup.OURS else 2.0}
        outcome = Outcome("c.py", setup, "evaluate", status=0, calls={"chat": 3}, metrics=metrics)
        outcome.save(results.emptied("c.py", setup))
    rows = [row.split(" | ") for row in table(["a/env.py", "b.py", "c.py", "d.py"], results).splitlines()]
    assert rows[2][2:5] == ["1 groups", "1 groups", "same but absent"]
    assert rows[3][2].startswith("exit 1: ERROR a \\| b in environments/b.py ")
    assert rows[3][2].endswith("…")
    assert "/usr" not in rows[3][2]
    assert rows[4][2:5] == ["metrics, 3 calls", "metrics, 3 calls", "same metrics"]
    assert set(rows[5][1:-1]) == {""}
    told = figures(["a/env.py", "b.py", "c.py", "d.py"], results)
    assert "2 files give groups or metrics on atroposlib, 2 of them here" in told
    assert "process: 1 files compared, 1 with the same tokens, 1 with meant differences alone" in told
