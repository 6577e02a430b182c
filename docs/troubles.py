"""Five runs with something wrong, each with the keys that lead from the dashboard to the cause."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from atropos_tui.ledger.outcomes import FailReason, ThrottleReason
from docs.story import GROUP, Story

IN_FLIGHT = 12
JUDGE = 2  # its server, after those that sample
_SOLVED = "Each gets the same, and 5 are left over: \\boxed{5}"
_TRIED = "I think it is \\boxed{7}"


@dataclass(frozen=True)
class Trouble:
    """`seen_first` stands on the dashboard; `keys` lead to `cause`, one after another."""

    name: str
    story: Callable[[], Story]
    seen_first: str
    keys: tuple[str, ...]
    cause: str


def flow(
    story: Story, groups: int, seconds: float, *, item: str = "", steps: int = 1_000, finish: bool = False
) -> Iterator[tuple[int, int]]:
    """Groups that start `seconds` apart and end a dozen later: the number and the group that ends now, its call done.

    The trainer keeps pace, up to a last step. `finish`: none is left in flight.
    """
    waiting: deque[int] = deque()
    for number in range(groups + IN_FLIGHT):
        story.at(number * seconds)
        if number < groups or not finish:
            waiting.append(story.begins(item.format(number=300 + number), step=min(steps, number // GROUP)))
        if number >= IN_FLIGHT:
            group = waiting.popleft()
            story.called(group, server=number % 2)
            yield number - IN_FLIGHT, group
            story.trainer(min(steps, number // GROUP), queue=number % 5)


def mixed(story: Story, right: str = _SOLVED, wrong: str = _TRIED) -> list[tuple[str, float]]:
    """Answers of which some are right, but neither none nor all."""
    solved = [True, False, *(story.chance.random() < 0.5 for _ in range(GROUP - 2))]
    return [(right, 1.0) if is_right else (wrong, 0.0) for is_right in solved]


def too_easy() -> Story:
    """The tasks were fine at first; now the policy solves nearly all of them, every time."""
    story = Story()
    for number, group in flow(story, groups=240, seconds=3.0):
        right = min(GROUP, 2 + number // 24) if number % 9 else GROUP - 1
        story.ends(group, [(_SOLVED, 1.0)] * right + [(_TRIED, 0.0)] * (GROUP - right))
    return story


def judge_down() -> Story:
    """A third server judges the answers. It went away a minute ago."""
    story = Story("essay_judge")
    judge = "http://10.0.0.9:9005/v1"
    story.server(JUDGE, healthy=True, judge=judge)
    item = "Three sentences about the year {number}."
    for number, group in flow(story, groups=160, seconds=2.0, item=item, steps=17):
        if number < 130:
            story.called(group, server=JUDGE, tokens=40)
            story.ends(group, [(f"In those days, {n} …", round(story.chance.random(), 1)) for n in range(GROUP)])
        else:
            story.called(group, server=JUDGE, tokens=0, error=f"the judge at {judge} refuses connections")
            story.server(JUDGE, healthy=False, detail="refuses connections", judge=judge)
            story.fails(group, FailReason.INFERENCE_ERROR, f"the judge at {judge} refuses connections")
    return story


def straggler() -> Story:
    """One rollout of one group goes on and on; the trainer has eaten what there was."""
    story = Story("repo_repair")
    slow = story.begins("Fix issue 299 of the parser")
    for _ in range(7):
        story.called(slow, n=1, tokens=700)
    story.calls(slow, n=1)
    for _, group in flow(story, groups=90, seconds=4.0, item="Fix issue {number} of the parser", finish=True):
        story.ends(group, mixed(story))
    story.trainer(12, queue=0)
    story.at(780.0)
    return story


def trainer_stuck() -> Story:
    """Groups are made as always, but nothing takes them any more."""
    story = Story()
    for _, group in flow(story, groups=140, seconds=2.0, steps=12, finish=True):
        story.ends(group, mixed(story))
    story.throttle(ThrottleReason.OFF_POLICY_LIMIT, "36 of 36 groups wait for the trainer")
    story.trainer(12, queue=36)
    story.at(900.0)
    return story


def template_drops_thinking() -> Story:
    """The environment tokenizes the chat again, and the template leaves out what stands between the think tags."""
    story = Story("riddles")
    thought = "Nine boxes of five are forty-five, and fifty less those leave five. " * 5
    right, wrong = f"<think>{thought}</think>\\boxed{{5}}", f"<think>{thought}</think>\\boxed{{7}}"
    for _, group in flow(story, groups=120, seconds=3.0, item="Fifty apples, nine each for five. What is left?"):
        answers = mixed(story, right, wrong)
        story.ends(group, answers, trained=[answer.split("</think>")[1] for answer, _ in answers])
    return story


TROUBLES = (
    Trouble("too_easy", too_easy, "too easy", ("3", "enter"), "1.00"),
    Trouble("judge_down", judge_down, "inference servers", ("5", "z"), "refuses connections"),
    Trouble("straggler", straggler, "7/8", ("1", "z"), "Fix issue 299"),
    Trouble("trainer_stuck", trainer_stuck, "36/36", ("4", "z"), "ago"),
    Trouble("template_drops_thinking", template_drops_thinking, "may drop reasoning", ("t", "enter", "v"), "boxed"),
)
