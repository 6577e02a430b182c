"""The environments that registered, and what each may expect: names, weights, minimum shares, who is still there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from atropos_tui.trajectory_api.wire import DEFAULT_ENV_NAME, RegisterEnv

# So that no environment is starved altogether, whatever its weight (upstream's constant).
LEAST_WEIGHT = 0.01


@dataclass(slots=True)
class Environment:
    """One registered environment. `seen_at` is when it last asked or sent anything, in monotonic seconds."""

    env_id: int
    name: str
    wandb_name: str
    max_token_length: int
    weight: float
    group_size: int
    minimum_share: float | None
    run_id: str | None
    control_url: str | None
    seen_at: float
    connected: bool = True
    accepted_groups: int = 0
    accepted_sequences: int = 0
    delivered_groups: int = 0
    last_group_at: float = 0.0

    @property
    def claim(self) -> float:
        """Its weight before it is divided by the sum of all; never negative."""
        return max(0.0, self.max_token_length * self.weight)


class Environments:
    """All environments since the last reset, by id; ids count from 0.

    An environment counts while it is connected and was heard of within `timeout` seconds; one that fell silent counts
    again with its next request.
    """

    def __init__(self, clock: Callable[[], float], timeout: float) -> None:
        self._clock = clock
        self._timeout = timeout
        self._rows: list[Environment] = []

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Environment]:
        return iter(self._rows)

    def get(self, env_id: int | None) -> Environment | None:
        return self._rows[env_id] if env_id is not None and 0 <= env_id < len(self._rows) else None

    def heard_of(self, environment: Environment) -> None:
        environment.seen_at = self._clock()

    def silent_for(self, environment: Environment) -> float:
        """Seconds since the environment was last heard of."""
        return self._clock() - environment.seen_at

    def counts(self, environment: Environment) -> bool:
        return environment.connected and self.silent_for(environment) <= self._timeout

    def counting(self) -> list[Environment]:
        since = self._clock() - self._timeout
        return [environment for environment in self._rows if environment.connected and environment.seen_at >= since]

    def register(self, request: RegisterEnv) -> Environment:
        """The row of the environment: its former one if it comes back, else a new one."""
        return self._filled_in(self._former_row(request) or self._new_row(request), request)

    def add(self, request: RegisterEnv) -> Environment:
        """A new row, whoever it is."""
        return self._filled_in(self._new_row(request), request)

    def _filled_in(self, row: Environment, request: RegisterEnv) -> Environment:
        row.max_token_length = request.max_token_length
        row.weight = 1.0 if request.weight is None else request.weight
        row.group_size = request.group_size
        row.minimum_share = request.min_batch_allocation
        row.run_id = request.run_id
        row.control_url = request.control_url
        row.connected = True
        self.heard_of(row)
        return row

    def restore(self, rows: list[Environment]) -> None:
        """Take over the rows of an earlier process; each gets the full time to be heard of again."""
        self._rows = rows
        for row in rows:
            self.heard_of(row)

    def clear(self) -> None:
        self._rows = []

    @property
    def total_claim(self) -> float:
        """Of all that count."""
        return sum(other.claim for other in self.counting())

    def weight_of(self, environment: Environment, total: float | None = None) -> float:
        """Its share of the weights of all that count, each multiplied by its length in tokens; `total` saves adding."""
        total = self.total_claim if total is None else total
        share = environment.max_token_length * environment.weight / total if total > 0 else 0.0
        return max(LEAST_WEIGHT, share)

    @property
    def unallocated_fraction(self) -> float:
        return 1.0 - min(1.0, sum(row.minimum_share or 0.0 for row in self.counting()))

    def minimums(self, batch_size: int) -> dict[int, int]:
        """Sequences that each environment with a minimum share has of each batch.

        Together they are no more than the batch: if the shares claim more, each is cut in proportion, but none to 0.
        """
        due = {row.env_id: int(batch_size * row.minimum_share) for row in self.counting() if row.minimum_share}
        due = {env_id: least for env_id, least in due.items() if least > 0}
        claimed = sum(due.values())
        if claimed > batch_size:
            due = {env_id: max(1, least * batch_size // claimed) for env_id, least in due.items()}
        return due

    def _former_row(self, request: RegisterEnv) -> Environment | None:
        """The row that this environment had: of the same run, or of the same name and gone."""
        name = request.desired_name or DEFAULT_ENV_NAME
        for row in self._rows:
            if request.run_id is not None and row.run_id == request.run_id:
                return row
        for row in self._rows:
            if row.name == name and not self.counts(row) and not (request.run_id and row.run_id):
                return row
        return None

    def _new_row(self, request: RegisterEnv) -> Environment:
        name = request.desired_name or DEFAULT_ENV_NAME
        env_id = len(self._rows)
        namesakes = sum(row.name == name for row in self._rows)
        row = Environment(env_id, name, f"{name}_{namesakes}", 0, 0.0, 1, None, None, None, self._clock())
        self._rows.append(row)
        return row
