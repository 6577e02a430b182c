"""What keys ask of the run: pause, step, evaluate, cancel …; sent at once, after a question, or refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeAlias

from textual import work
from textual.app import App
from textual.notifications import SeverityLevel

from atropos_tui.errors import AtroposError
from atropos_tui.ledger.outcomes import ENDED_STATES, RunState
from atropos_tui.monitor.snapshot import InFlightRow, RunSnapshot
from atropos_tui.ui import formatting
from atropos_tui.ui.connection import Lost
from atropos_tui.ui.ink import clip
from atropos_tui.ui.keys import Command, named
from atropos_tui.ui.leaving import Answer
from atropos_tui.ui.run_source import NoRun, RecordedSource, RestartableSource, RunSource
from atropos_tui.ui.text_safety import visible

Send: TypeAlias = Callable[[], Awaitable[object]]
_HALTED = frozenset({RunState.PAUSING, RunState.PAUSED})
_ITEM_WIDTH = 60


class Asked(NamedTuple):
    """A command that was sent; `word` shows in the header until a snapshot has one of the states."""

    word: str
    until: frozenset[RunState]


class CommandingApp(App[Answer]):
    """The part of the app that commands the run it watches; the other part says what that is and how it is."""

    source: RunSource
    read_only: bool
    _snapshot: RunSnapshot
    _lost: Lost | None
    _asked: Asked | None

    def say(self, text: str, severity: SeverityLevel = "information") -> None:
        """A short note at the bottom right. Its text is never read as markup."""
        self.notify(visible(text), severity=severity, timeout=4, markup=False)

    @property
    def run_name(self) -> str:
        """What to call the run that is watched."""
        raise NotImplementedError

    def _paint(self) -> None:
        raise NotImplementedError

    def action_pause(self) -> None:
        refusal = "it is paused already" if self._halted else ""
        self._command(self.source.pause, refusal, Asked("pausing", _HALTED | ENDED_STATES))

    def action_resume(self) -> None:
        refusal = "" if self._halted else "it is not paused"
        self._command(self.source.resume, refusal, Asked("resuming", frozenset(RunState) - _HALTED))

    def action_step_group(self) -> None:
        refusal = "" if self._halted else "a single group can be started while the run is paused: p first"
        self._command(self.source.step_group, refusal, None)

    def action_pause_now(self) -> None:
        refusal = "it is paused already" if self._snapshot.run.state is RunState.PAUSED else ""
        many = formatting.plural(self._snapshot.queue.in_flight, "group")
        self._ask(
            f"Pause {self.run_name} now?",
            f"{many} in flight go back; what they sampled is lost",
            self.source.pause_now, refusal, Asked("pausing", _HALTED | ENDED_STATES),
        )  # fmt: skip

    def action_evaluate_now(self) -> None:
        refusal = "an evaluation runs already" if self._snapshot.evals.running_since_at else ""
        self._ask(
            f"Evaluate {self.run_name} now?", f"at step {self._snapshot.run.step}, as the environment does it",
            self.source.evaluate_now, refusal,
        )  # fmt: skip

    def action_restart(self) -> None:
        from atropos_tui.ui.confirm import ConfirmScreen

        source = self.source
        if self.read_only:
            self.say("read-only: this screen cannot change the run", "warning")
        elif isinstance(source, RecordedSource) and source.timeline.at is not None:
            end = self.keys_of(named("time.end"))
            self.say(f"this is an earlier moment of the run; {end} leads to its end, where it can go on", "warning")
        elif self._snapshot.run.state not in ENDED_STATES:
            self.say("the run goes on; what crashed or ended can be started again", "warning")
        elif not isinstance(source, RestartableSource):
            self.say("this run can only be started again where it ran: atropos-tui restart RUN", "warning")
        else:
            question = ConfirmScreen(
                f"Start {self.run_name} again?", "goes on with its outbox, its record and its data"
            )

            def answered(yes: bool | None) -> None:
                if yes:
                    self._restart(source)

            self.push_screen(question, answered)

    @work(group="commands")
    async def _restart(self, source: RestartableSource) -> None:
        self.say("starting it again …")
        try:
            goes_on = await source.restart()
        except (AtroposError, OSError) as error:
            self.say(str(error), "error")
            return
        self._go_on_with(source, goes_on)

    def _go_on_with(self, before: RestartableSource, source: RunSource) -> None:
        """Follow the run that was started again, in the place of what was followed before."""
        raise NotImplementedError

    def keys_of(self, command: Command) -> str:
        """The keys of a command as people write them, the user's own included."""
        raise NotImplementedError

    def ask_to_cancel(self, row: InFlightRow) -> None:
        self._ask(
            f"Cancel group {row.group_id}?", "the group ends as failed, its item is given up",
            lambda: self.source.cancel_group(row.group_id), names=_in_flight_words(row),
        )  # fmt: skip

    def ask_to_requeue(self, row: InFlightRow) -> None:
        self._ask(
            f"Requeue group {row.group_id}?", "its item returns to the backlog; what was sampled is lost",
            lambda: self.source.requeue_group(row.group_id), names=_in_flight_words(row),
        )  # fmt: skip

    @property
    def _halted(self) -> bool:
        return self._snapshot.run.state in _HALTED

    def _ask(
        self,
        title: str,
        consequence: str,
        send: Send,
        refusal: str = "",
        asked: Asked | None = None,
        names: Sequence[str] = (),
    ) -> None:
        """Send a command once it was confirmed, or say why it cannot be sent now."""
        refusal = self._why_disarmed() or refusal
        if refusal:
            self.say(refusal, "warning")
            return
        from atropos_tui.ui.confirm import ConfirmScreen

        def answered(yes: bool | None) -> None:
            if yes:
                self._command(send, "", asked)

        self.push_screen(ConfirmScreen(title, consequence, names), answered)

    def _command(self, send: Send, refusal: str, asked: Asked | None) -> None:
        """Send a command, or say why it cannot be sent now."""
        refusal = self._why_disarmed() or refusal
        if refusal:
            self.say(refusal, "warning")
        else:
            self._send(send, asked)

    def _why_disarmed(self) -> str:
        if self.read_only:
            return "read-only: this screen cannot change the run"
        if isinstance(self.source, NoRun):
            return "no run is open: choose one in the fleet"
        if self._lost is not None or not self._snapshot.taken_at:
            return "there is no connection to the run"
        if self._snapshot.run.state in ENDED_STATES:
            return "the run has ended"
        return ""

    @work(group="commands")
    async def _send(self, send: Send, asked: Asked | None) -> None:
        self._asked = asked
        self._paint()
        try:
            taken = await send()
        except (AtroposError, OSError) as error:
            self._asked = None
            self._paint()
            self.say(str(error), "error")
        else:
            if taken is False:
                self.say("the environment's code holds its loop; the run takes it as soon as it lets go")


def _in_flight_words(row: InFlightRow) -> tuple[str, ...]:
    done = f"{row.rollouts_done} of {formatting.plural(row.rollouts, 'rollout')} done"
    tokens = formatting.plural(row.completion_tokens, "token")
    return clip(visible(row.item), _ITEM_WIDTH), f"{row.stage}, {done}, {tokens}"
