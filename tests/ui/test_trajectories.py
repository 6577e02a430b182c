"""Rollouts in the trajectories: each key does what the key table says, and says so when it cannot."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from atropos_tui.monitor.group_detail import RolloutDetail
from atropos_tui.ui.views.rollout_text import View
from atropos_tui.ui.views.token_view import Lens
from tests.ui.conftest import MakeApp
from tests.ui.opened_trajectories import Chats, alone, on_chats, opened
from tests.ui.recorded_chats import chat_group, hostile_group, source_of_chats


@pytest.fixture
def chats(make_app: MakeApp) -> Chats:
    return on_chats(make_app)


class TestRollouts:
    async def test_n_and_p_step_through_the_rollouts_and_around(self, make_app: MakeApp) -> None:
        async with opened(make_app) as o:
            await o.press("N")
            await o.until(lambda: len(o.rollout.rollouts) == 8)
            await o.press("n", "right", "p")
            assert o.rollout.rollout == 1
            await o.press("left", "p")
            assert o.rollout.rollout == 7

    async def test_b_and_w_find_the_best_and_the_worst_rollout(self, chats: Chats) -> None:
        async with chats() as o:
            await o.press("w")
            assert o.rollout.rollout == 3
            await o.press("b")
            assert o.rollout.rollout == 0

    async def test_with_one_rollout_there_is_nothing_to_step_to_or_compare(self, make_app: MakeApp) -> None:
        async with opened(make_app, alone(RolloutDetail(score=None))) as o:
            for key in ("n", "p", "c"):
                await o.press(key)
                assert o.last_said == "this group has one rollout"
            await o.press("b")
            assert o.last_said == "no rollout of this group has a score"
            await o.press("C")
            assert o.last_said == "no two rollouts are compared: c first"

    async def test_a_group_of_which_nothing_is_kept_has_no_rollout(self, make_app: MakeApp) -> None:
        async with opened(make_app) as o:
            for key in ("n", "b", "w", "c"):
                await o.press(key)
                assert o.last_said == "there is no rollout"
            for key in ("m", "full_stop", "comma", "semicolon"):
                await o.press(key)
                assert o.last_said == "this rollout has no tokens"

    async def test_c_compares_with_the_best_from_the_first_difference_on(self, chats: Chats) -> None:
        async with chats() as o:
            await o.press("w", "c")
            assert (o.rollout.rollout, o.rollout.beside) == (3, 0)
            facts = next(line for line in o.painted() if "score" in line)
            assert [half.split()[0] for half in facts.strip("│").split("│")] == ["4", "1"]
            one, other = (o.rollout.rollouts[index].tokens for index in (3, 0))
            assert one[: o.rollout.token] == other[: o.rollout.token]
            assert one[o.rollout.token] != other[o.rollout.token]
            await o.press("C")
            assert o.rollout.beside == 1
            await o.press("c")
            assert o.rollout.beside is None

    async def test_messages_of_two_rollouts_scroll_as_one(self, chats: Chats) -> None:
        async with chats() as o:
            await o.press("enter", "c", "t", "t")
            heading = next(line for line in o.painted() if "assistant" in line)
            assert heading.count("assistant  3/5") == 2

    async def test_apostrophe_goes_to_where_two_rollouts_part(self, chats: Chats) -> None:
        async with chats() as o:
            await o.press("apostrophe")
            assert o.last_said == "no two rollouts are compared: c first"
            await o.press("c")
            difference = o.rollout.token
            await o.press("full_stop", "full_stop", "apostrophe")
            assert (o.rollout.token, o.rollout.view) == (difference, View.TOKENS)


class TestMessages:
    async def test_t_and_parentheses_step_through_the_turns_and_around(self, chats: Chats) -> None:
        async with chats(size=(80, 24)) as o:
            await o.press("enter", "t")
            assert "user  2/5" in o.painted()[6]
            await o.press("right_parenthesis")
            assert "assistant  3/5" in o.painted()[6]
            await o.press("left_parenthesis")
            assert "user  2/5" in o.painted()[6]
            await o.press("end", "t")
            assert "system  1/5" in o.painted()[6]

    async def test_turns_are_not_in_the_tokens(self, chats: Chats) -> None:
        async with chats() as o:
            await o.press("v", "t")
            assert o.last_said == "turns are in the messages: v"

    async def test_o_unfolds_the_reasoning_and_folds_it(self, chats: Chats) -> None:
        async with chats() as o:
            assert not any("I should compute this" in line for line in o.painted())
            await o.press("o")
            assert any("I should compute this" in line for line in o.painted())
            await o.press("o")
            assert not any("I should compute this" in line for line in o.painted())

    async def test_unfolding_keeps_the_message_that_is_read_in_its_place(self, chats: Chats) -> None:
        async with chats(size=(80, 24)) as o:
            await o.press("enter", "t", "t", "t")
            top = o.painted()[6]
            assert "tool  4/5" in top
            await o.press("o")
            assert o.painted()[6] == top

    async def test_capital_d_shows_markdown(self, chats: Chats) -> None:
        async with chats(size=(120, 60)) as o:
            assert any("**bus**" in line for line in o.painted())
            await o.press("D")
            assert not any("**" in line for line in o.painted())
            assert any("• the train has gone 100 km" in line for line in o.painted())
            assert "markdown" in o.painted()[0]

    async def test_hostile_text_is_shown_in_full_and_obeyed_nowhere(self, make_app: MakeApp) -> None:
        async with opened(make_app, source_of_chats(hostile_group())) as o:
            shown = "\n".join(o.painted())
            for stand_in in ("‹ESC›[31mred", "‹BEL›", "‹BS›‹BS›", "‹NUL›", "‹RLO›evil‹PDF›", "zero‹ZWSP›width‹ZWJ›",
                             "‹U+DC80›", "‹U+E0041›", "[bold]markup[/bold]", "漢字かな", "שלום", "سلام"):  # fmt: skip
                assert stand_in in shown
            assert not any(ord(character) < 32 for line in o.painted() for character in line)


class TestTokens:
    async def test_v_changes_between_messages_and_tokens_and_x_the_lens(self, chats: Chats) -> None:
        async with chats() as o:
            await o.press("v")
            assert (o.rollout.view, o.rollout.lens) == (View.TOKENS, Lens.LOGPROB)
            for lens in (Lens.ADVANTAGE, Lens.REFERENCE, Lens.MASK, Lens.LOGPROB):
                await o.press("x")
                assert o.rollout.lens is lens
                assert lens in o.painted()[0]
            await o.press("v")
            assert o.rollout.view is View.MESSAGES

    async def test_the_reference_lens_says_when_there_is_no_reference(self, make_app: MakeApp) -> None:
        async with opened(make_app) as o:
            await o.press("N")
            await o.until(lambda: len(o.rollout.rollouts) == 8)
            await o.press("v", "x", "x")
            assert any("no ref_logprobs, no distill_logprobs" in line for line in o.painted())

    async def test_full_stop_comma_and_m_move_between_tokens(self, chats: Chats) -> None:
        async with chats() as o:
            first_trained = o.rollout.token
            await o.press("full_stop", "full_stop", "comma")
            assert o.rollout.token == first_trained + 1
            await o.press("m")
            logprobs = o.rollout.rollouts[0].logprobs
            assert logprobs[o.rollout.token] == min(logprobs)
            least = o.rollout.token
            await o.press("m")
            assert logprobs[least] <= logprobs[o.rollout.token] <= sorted(logprobs)[1]

    async def test_semicolon_goes_from_edge_to_edge_of_the_mask(self, make_app: MakeApp) -> None:
        tokens = tuple(range(40))
        masks = tuple(token if token // 10 % 2 else -100 for token in tokens)
        async with opened(make_app, alone(RolloutDetail(score=0.5, tokens=tokens, masks=masks))) as o:
            assert o.rollout.token == 10
            visited = []
            for _ in range(3):
                await o.press("semicolon")
                visited.append(o.rollout.token)
            assert visited == [20, 30, 10]

    async def test_a_mask_without_edges_and_a_rollout_without_logprobs_say_so(self, make_app: MakeApp) -> None:
        async with opened(make_app, alone(RolloutDetail(score=0.5, tokens=(1, 2), masks=(1, 2)))) as o:
            await o.press("semicolon")
            assert "the mask has no edge" in o.last_said
            await o.press("m")
            assert "gave no logprobs" in o.last_said

    async def test_two_hundred_thousand_tokens_scroll_from_key_to_key(self, make_app: MakeApp) -> None:
        many = 200_000
        rollout = RolloutDetail(
            score=1.0, tokens=(7,) * many, pieces=("word ",) * many, masks=(-100,) * 100 + (7,) * (many - 100),
            logprobs=(-0.5,) * many, messages=({"role": "assistant", "content": "word " * many},),
        )  # fmt: skip
        async with opened(make_app, alone(rollout)) as o:
            for keys in (("enter", *("d",) * 40), ("v", *("d",) * 20, *("full_stop",) * 20)):
                await o.press(keys[0])
                started = time.process_time()
                await o.press(*keys[1:])
                assert (time.process_time() - started) / len(keys) < 0.1
            await o.press("end")
            assert any("200,000" in line for line in o.painted())


class TestFacts:
    async def test_i_shows_item_parts_of_the_score_and_requests(self, chats: Chats) -> None:
        async with chats() as o:
            await o.press("v", "i")
            shown = "\n".join(o.painted())
            for fact in ("A train leaves at noon", "brevity", "requests  8 of the group", "slowest 1.8s", "1 failed",
                         "10.0.0.5:9001", "ReadTimeout", "length ×2", "the 3 first ones of"):  # fmt: skip
                assert fact in shown
            await o.press("i")
            assert o.rollout.view is View.TOKENS

    async def test_requests_of_a_single_rollout_are_told_apart_from_those_of_the_group(self, make_app: MakeApp) -> None:
        group = chat_group()
        calls = tuple(replace(call, rollout=number % 2) for number, call in enumerate(group.calls))
        async with opened(make_app, source_of_chats(replace(group, calls=calls))) as o:
            await o.press("i")
            assert any("requests  3 of this rollout, 8 of the group" in line for line in o.painted())
            await o.press("n")
            assert any("requests  2 of this rollout" in line for line in o.painted())
            await o.press("n")
            assert any("none was made for this rollout" in line for line in o.painted())

    async def test_without_requests_it_says_so(self, make_app: MakeApp) -> None:
        async with opened(make_app) as o:
            await o.press("i")
            assert any("none is known" in line for line in o.painted())
