"""The one table of keys: bindings, footer, help and the command palette are made from it.

Every command has an id, by which a keymap can give it other keys. No core command needs ctrl.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple

from textual.binding import Binding, BindingType


class Scope(StrEnum):
    """Where a command works; the values are the headings of the help."""

    RUN = "The run"
    EVERYWHERE = "Everywhere"
    DASHBOARD = "Dashboard"
    QUEUE = "Rollout queue"
    FLEET = "Fleet"
    CONFIG = "Configuration"
    EVALS = "Evaluations"
    ALERTS = "Alerts"
    LOGS = "Logs"
    TIME = "Time of a recorded run"
    TRAJECTORIES = "Trajectories"
    LIST = "Lists and text"
    HELP = "This help"
    QUIT = "When leaving"
    CONFIRM = "When asked"


# Scopes whose keys work at the same time. On other screens some commands have the keys of commands of the run.
ON_THE_DASHBOARD = (Scope.RUN, Scope.DASHBOARD, Scope.QUEUE, Scope.LIST, Scope.EVERYWHERE)


class Command(NamedTuple):
    """`keys` in Textual's names, separated by commas; `label` is a word for the footer, `help` a sentence."""

    id: str
    keys: str
    action: str
    label: str
    help: str
    scope: Scope

    @property
    def changes_run(self) -> bool:
        """Whether it is disarmed in a read-only screen."""
        return self.scope is Scope.RUN or self.id in _CHANGE_RUNS


# Commands of other scopes that change a run.
_CHANGE_RUNS = frozenset({"queue.cancel", "queue.requeue", "fleet.pause", "fleet.resume"})


def shown(keys: str, *, ascii_only: bool = False) -> str:
    """Keys as people write them: `enter`, `?`, `shift+tab`. Without arrows where these would look like letters."""
    named = ((key, KEY_NAMES.get(key, key)) for key in keys.split(","))
    return " ".join(key if ascii_only and not name.isascii() else name for key, name in named)


KEY_NAMES = {
    "question_mark": "?",
    "colon": ":",
    "slash": "/",
    "full_stop": ".",
    "comma": ",",
    "escape": "esc",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "pgup",
    "pagedown": "pgdn",
    "plus": "+",
    "minus": "-",
    "equals_sign": "=",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "left_curly_bracket": "{",
    "right_curly_bracket": "}",
    "less_than_sign": "<",
    "greater_than_sign": ">",
    "dollar_sign": "$",
    "asterisk": "*",
    "number_sign": "#",
    "semicolon": ";",
    "apostrophe": "'",
    "left_parenthesis": "(",
    "right_parenthesis": ")",
}

_TABLE: dict[Scope, tuple[tuple[str, str, str, str, str], ...]] = {
    Scope.RUN: (
        ("run.pause", "p", "app.pause", "pause", "Start no further group; those in flight finish."),
        ("run.resume", "r", "app.resume", "resume", "Start groups again."),
        ("run.step", "s", "app.step_group", "step", "While paused: start one group."),
        ("run.pause_now", "P", "app.pause_now", "pause now", "Put the groups in flight back and stop at once; asks."),
        ("run.restart", "R", "app.restart", "restart", "Start again a run that ended, crashed or was killed; asks."),
        ("run.evaluate", "E", "app.evaluate_now", "evaluate", "Evaluate now, whatever the step; asks."),
    ),
    Scope.EVERYWHERE: (
        ("show.trajectories", "t", "app.trajectories", "trajectories", "Groups that ended, rollout by rollout."),
        ("show.logs", "l", "app.logs", "logs", "Log lines, equal ones taken together, with their tracebacks."),
        ("show.evals", "e", "app.evals", "evals", "Evaluations over steps."),
        ("show.alerts", "a", "app.alerts", "alerts", "All alerts and how long they last."),
        ("show.config", "c", "app.config", "config", "The merged configuration, and where each value is from."),
        ("show.fleet", "F", "app.fleet", "fleet", "All runs: those found on this machine and those given by URL."),
        ("show.help", "question_mark", "app.help", "help", "The keys of this screen."),
        ("app.theme", "T", "app.next_theme", "theme", "The next theme."),
        ("app.mouse", "M", "app.toggle_mouse", "mouse", "Leave the mouse to the terminal, or take it back."),
        ("app.repaint", "L,ctrl+l", "app.repaint", "repaint", "Paint all anew, where something else wrote on it."),
        ("app.palette", "colon", "app.command_palette", "commands", "All commands by name."),
        ("app.back", "escape", "app.back", "back", "Back to where you came from."),
        ("app.quit", "q,ctrl+q,ctrl+c", "app.ask_quit", "quit", "Leave; asks what becomes of the run."),
    ),
    Scope.DASHBOARD: (
        ("pane.1", "1", "focus_pane(1)", "queue", "To the rollout queue."),
        ("pane.2", "2", "focus_pane(2)", "scores", "To the scores."),
        ("pane.3", "3", "focus_pane(3)", "skipped", "To the skipped groups."),
        ("pane.4", "4", "focus_pane(4)", "sends", "To the trainer sends."),
        ("pane.5", "5,i", "focus_pane(5)", "inference", "To the inference servers."),
        ("pane.next", "tab", "app.focus_next", "next pane", "To the next pane."),
        ("pane.previous", "shift+tab", "app.focus_previous", "previous pane", "To the previous pane."),
        ("pane.left", "left,h", "focus_beside(-1)", "left", "To the pane at the left."),
        ("pane.right", "right", "focus_beside(1)", "right", "To the pane at the right."),
        ("pane.zoom", "z", "zoom", "zoom", "One pane on the whole screen, and back."),
        ("scores.window", "w", "next_window", "window", "Trend of the whole run, one hour, ten minutes, two minutes."),
        ("pane.open", "enter", "open", "open", "Open the group under the cursor; elsewhere, zoom the pane."),
    ),
    Scope.QUEUE: (
        ("queue.order", "o", "screen.next_order", "order", "Order: longest in flight, least done, most tokens, new."),
        ("queue.cancel", "x", "screen.cancel_group", "cancel", "Give up the group under the cursor; asks."),
        ("queue.requeue", "b", "screen.requeue_group", "requeue", "Put its item back into the backlog instead; asks."),
    ),
    Scope.FLEET: (
        ("fleet.open", "enter", "open", "open", "Watch the run under the cursor."),
        ("fleet.mark", "m,insert", "mark", "mark", "Mark the run for pause and resume, or take the mark away."),
        ("fleet.mark_all", "A", "mark_all", "mark all", "Mark all runs that answer, or none."),
        ("fleet.pause", "p", "pause", "pause", "Pause the marked runs, or the one under the cursor; asks."),
        ("fleet.resume", "r", "resume", "resume", "Resume the marked runs, or the one under the cursor; asks."),
        ("fleet.ended", "x", "toggle_ended", "ended", "Show runs that ended, or leave them out."),
    ),
    Scope.CONFIG: (
        ("config.filter", "slash", "filter", "filter", "Only lines with these words in name, value or source."),
        ("config.changed", "x", "toggle_defaults", "defaults", "Leave out what no one set, or show all."),
    ),
    Scope.ALERTS: (("alerts.evidence", "enter", "evidence", "evidence", "To what shows it: a pane, or a group."),),
    Scope.LOGS: (
        ("logs.open", "enter", "open", "open the group", "Open the group that the line tells of."),
        ("logs.zoom", "z", "zoom", "zoom", "The line and all of its traceback on the whole screen, and back."),
    ),
    Scope.EVALS: (
        ("evals.next", "right,m", "next_metric(1)", "next metric", "The next metric in the chart."),
        ("evals.previous", "left,h", "next_metric(-1)", "previous metric", "The metric before it."),
    ),
    Scope.TIME: (
        ("time.event_back", "left_square_bracket", "screen.travel('event', -1)", "event back", "One event earlier."),
        ("time.event_on", "right_square_bracket", "screen.travel('event', 1)", "event on", "One event later."),
        ("time.step_back", "left_curly_bracket", "screen.travel('step', -1)", "step back", "To the step's beginning."),
        ("time.step_on", "right_curly_bracket", "screen.travel('step', 1)", "step on", "To the trainer's next step."),
        ("time.minute_back", "less_than_sign", "screen.travel('minute', -1)", "minute back", "One minute earlier."),
        ("time.minute_on", "greater_than_sign", "screen.travel('minute', 1)", "minute on", "One minute later."),
        ("time.tenth_back", "minus", "screen.travel('tenth', -1)", "tenth back", "Back by a tenth of the run."),
        ("time.tenth_on", "plus,equals_sign", "screen.travel('tenth', 1)", "tenth on", "On by a tenth of the run."),
        ("time.start", "0", "screen.seek(0.0)", "start", "To the beginning."),
        ("time.end", "dollar_sign", "screen.seek(1.0)", "end", "To the end, and along with it while the run goes on."),
    ),
    Scope.TRAJECTORIES: (
        ("group.next", "N,J", "step_to_group(1)", "next group", "The next group, older by one."),
        ("group.previous", "P,K", "step_to_group(-1)", "previous group", "The group before it, newer by one."),
        ("rollout.next", "n,right", "step_to_rollout(1)", "next rollout", "The next rollout of the group."),
        ("rollout.previous", "p,left,h", "step_to_rollout(-1)", "previous rollout", "The rollout before it."),
        ("rollout.best", "b", "best_rollout", "best", "The rollout with the highest score."),
        ("rollout.worst", "w", "worst_rollout", "worst", "The rollout with the lowest score."),
        ("rollout.compare", "c", "compare", "compare", "Beside this rollout the best one (or the worst), or no other."),
        ("rollout.compare_next", "C", "compare_with_next", "with next", "Compare with the next rollout."),
        ("rollout.view", "v", "next_view", "messages/tokens", "Messages or tokens."),
        ("rollout.facts", "i", "facts", "facts", "The item, the parts of the score and the requests of the group."),
        ("turn.next", "t,right_parenthesis", "step_to_turn(1)", "turn", "Messages: the next turn."),
        ("turn.previous", "left_parenthesis", "step_to_turn(-1)", "previous turn", "Messages: the turn before it."),
        ("message.unfold", "o", "unfold", "reasoning", "Messages: unfold the reasoning, or fold it."),
        ("message.markdown", "D", "markdown", "markdown", "Messages: as Markdown, or as they are written."),
        ("hit.next", "asterisk", "step_to_hit(1)", "next hit", "The next searched word."),
        ("hit.previous", "number_sign", "step_to_hit(-1)", "previous hit", "The searched word before it."),
        ("token.lens", "x", "next_lens", "lens", "Tokens: mask, logprob, advantage or difference to the reference."),
        ("token.next", "full_stop", "step_to_token(1)", "next token", "Tokens: the next one."),
        ("token.previous", "comma", "step_to_token(-1)", "previous token", "Tokens: the one before."),
        ("token.least", "m", "least_likely_token", "least likely", "Tokens: the next less likely one."),
        ("token.edge", "semicolon", "mask_edge", "mask edge", "Tokens: the next one at which the mask changes."),
        ("token.difference", "apostrophe", "first_difference", "difference", "Where two compared rollouts part."),
        ("list.filter", "slash", "filter", "filter", 'Filter and search: score<0.5 outcome:skipped "text" -took>5'),
        ("list.sort", "S", "sort", "sort", "Order by time, score, length, step, seconds, outcome or reason."),
        ("list.reverse", "R", "reverse", "reverse", "The same order from the other end."),
        ("list.outcome", "f", "next_outcome", "outcome", "The next outcome: delivered, skipped, failed …"),
        ("group.copy", "y", "copy", "copy", "Copy the rollout to the terminal's clipboard."),
        ("group.write", "Y", "write", "write", "Write the whole group to a file, as JSON."),
        ("group.bookmark", "B", "bookmark", "bookmark", "Bookmark the group or not; the filter `bookmarked` finds it."),
        ("group.note", "A", "note", "note", "Write a note on the group; the filter `note:text` finds it."),
        ("list.export", "X", "export('jsonl')", "export", "Write all groups of the filter to a JSONL file."),
        ("list.page", "H", "export('html')", "HTML page", "Write all groups of the filter as one HTML page."),
        ("list.zoom", "z", "zoom", "zoom", "The list or the rollout on the whole screen, and back."),
        ("list.open", "enter", "open", "open", "Into the rollout; escape leads back to the list."),
        ("list.switch", "tab", "switch", "switch", "Between the list and the rollout."),
    ),
    Scope.LIST: (
        ("list.up", "up,k", "move(-1)", "up", "One up."),
        ("list.down", "down,j", "move(1)", "down", "One down."),
        ("list.page_up", "pageup,u", "move_page(-1)", "page up", "A page up."),
        ("list.page_down", "pagedown,d,space", "move_page(1)", "page down", "A page down."),
        ("list.top", "home,g", "move_to_end(-1)", "top", "To the first."),
        ("list.end", "end,G", "move_to_end(1)", "end", "To the last."),
    ),
    Scope.HELP: (("help.close", "escape,question_mark,q,enter", "close", "close", "Close the help."),),
    Scope.QUIT: (
        ("quit.stop", "s", "answer('stop')", "stop", "End the run."),
        ("quit.detach", "d", "answer('detach')", "detach", "Leave the run running."),
        ("quit.stay", "escape,n,q", "stay", "stay", "Close the question."),
    ),
    Scope.CONFIRM: (
        ("confirm.yes", "y", "answer(True)", "yes", "Do it."),
        ("confirm.no", "n,escape,q", "answer(False)", "no", "Close the question."),
    ),
}

COMMANDS = tuple(Command(*row, scope) for scope, rows in _TABLE.items() for row in rows)


def commands(scopes: Iterable[Scope]) -> list[Command]:
    """The commands of these scopes, in the order of the scopes."""
    return [command for scope in scopes for command in COMMANDS if command.scope is scope]


_BY_ID = {command.id: command for command in COMMANDS}


def named(command_id: str) -> Command:
    """The command with this id."""
    return _BY_ID[command_id]


class Hint(NamedTuple):
    """An entry of the footer: one command, or two that belong together, as in `n/p rollout`."""

    commands: tuple[Command, ...]
    label: str

    @property
    def changes_run(self) -> bool:
        return any(command.changes_run for command in self.commands)


def hint(*ids: str, label: str = "") -> Hint:
    """A hint at these commands; a single one has its own label."""
    return Hint(tuple(named(command_id) for command_id in ids), label or named(ids[0]).label)


def bindings(*scopes: Scope) -> list[BindingType]:
    """The bindings of these scopes; each keeps its command's id, so that a keymap reaches it."""
    return [Binding(command.keys, command.action, command.label, id=command.id) for command in commands(scopes)]
