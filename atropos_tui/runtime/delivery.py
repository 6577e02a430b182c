"""What happens to finished groups: checked, counted, handed to the sender or written to a file, then shown."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sized
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from atropos_tui.errors import ContractError
from atropos_tui.ledger.events import GroupDelivered, GroupEnqueued, GroupScored
from atropos_tui.ledger.outcomes import DeliveredAs, RequeueReason
from atropos_tui.runtime.checks import CheckedGroup, GroupChecks, Rejection
from atropos_tui.runtime.failures import describe
from atropos_tui.runtime.flight import Flight, current_flight
from atropos_tui.runtime.rollout import rejecting_part

if TYPE_CHECKING:
    from atropos_tui.runtime.assembly import Runtime

logger = logging.getLogger(__name__)

T = TypeVar("T")


class GroupDestination(Protocol):
    """Where checked groups go. Publishes GroupEnqueued and everything after it; returns once the group is safe."""

    async def submit(self, checked: CheckedGroup, group_id: int, step: int) -> None: ...


class Delivery:
    """The work behind `BaseEnv.handle_send_to_api`."""

    def __init__(self, runtime: Runtime) -> None:
        self.destination: GroupDestination | None = None
        self.submitted = 0
        self._runtime = runtime
        self._env = runtime.env
        # A thread of our own: asyncio's common ones may all be held by the environment's scoring functions.
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="groups")
        self._under_way: set[asyncio.Task[Any]] = set()
        self._settings: tuple[int, bool, float] | None = None
        self._checks: GroupChecks | None = None

    async def handle(self, scored_data: Any, item: Any, *, send: bool, abort_on_too_long: bool) -> None:
        """Bring each group to its outcome; one bad group takes no other along, and no cancellation one that is here."""
        groups = scored_data if isinstance(scored_data, list) else [scored_data]
        work = asyncio.create_task(self._handle_all(groups, item, send, abort_on_too_long))
        self._under_way.add(work)
        work.add_done_callback(self._under_way.discard)
        for group, checked in await asyncio.shield(work):
            await self._show(group, checked, item)

    async def _handle_all(
        self, groups: list[Any], item: Any, send: bool, abort_on_too_long: bool
    ) -> list[tuple[Any, CheckedGroup]]:
        """The groups that were passed on."""
        passed = []
        for group in groups:
            flight = self._claim(group, item)
            try:
                checked = await self._handle_one(group, flight, send, abort_on_too_long)
            except asyncio.CancelledError:
                if flight.split_from is None:
                    self._env.backlog.append(flight.item)
                flight.requeue(RequeueReason.SHUTDOWN)
                raise
            except Exception as error:
                logger.error("group %d: %s", flight.group_id, describe(error), exc_info=error)
                flight.fail(error)
            else:
                passed += [(group, checked)] if checked is not None else []
        return passed

    async def _handle_one(self, group: Any, flight: Flight, send: bool, abort_on_too_long: bool) -> CheckedGroup | None:
        """Check a group and pass it on; None if it stays here."""
        if group is None:
            flight.reject(rejecting_part(self._env))
            return None
        checked = await self._off_loop(self._check, group, flight, abort_on_too_long)
        self._tell(checked, flight)
        if isinstance(checked, Rejection):
            logger.info("group %d skipped (%s): %s", flight.group_id, checked.reason, checked.detail)
            flight.skip(checked.reason, checked.split, checked.detail)
            return None
        await (self._pass_on(checked, flight, group) if send else self._end_in_file(checked, flight, group))
        return checked

    def _tell(self, checked: CheckedGroup | Rejection, flight: Flight) -> None:
        if checked.scores:
            self._runtime.stream.publish(
                GroupScored, group_id=flight.group_id, scores=checked.scores,
                completion_tokens=checked.completion_tokens, truncated=checked.truncated,
            )  # fmt: skip
            self._env.completion_lengths.extend(checked.completion_tokens)
        if checked.content is not None:
            self._runtime.stream.keep(checked.content)

    def _claim(self, group: Any, item: Any) -> Flight:
        """The flight of the running rollout for the first group of an item, a new one for any further group."""
        flight = current_flight.get()
        if flight is not None and not flight.claimed and not flight.settled:
            flight.claimed = True
            return flight
        tokens = group.get("tokens") if isinstance(group, Mapping) else None
        further = Flight(
            self._runtime.stream,
            self._runtime.numbers.next(),
            item,
            rollouts=len(tokens) if isinstance(tokens, Sized) else self._env.config.group_size,
            step=flight.step if flight is not None else self._runtime.trainer.step,
            split_from=flight.group_id if flight is not None else None,
        )
        further.claimed = True
        return further

    def _check(self, group: Any, flight: Flight, abort_on_too_long: bool) -> CheckedGroup | Rejection:
        env = self._env
        if env.config.include_messages and isinstance(group, Mapping) and group.get("messages") is None:
            group = self._with_messages(group)
        return self._current_checks().check(
            group,
            group_id=flight.group_id,
            item=flight.preview,
            max_token_len=env.max_token_len,
            abort_on_any_max_length_exceeded=abort_on_too_long,
        )

    def _current_checks(self) -> GroupChecks:
        """Environments replace their config after the constructor, so the checks are those of the config now."""
        config = self._env.config
        settings = (config.group_size, config.ensure_scores_are_not_same, config.score_tolerance)
        if self._checks is None or settings != self._settings:
            self._settings, self._checks = settings, GroupChecks(*settings)
        return self._checks

    def _with_messages(self, group: Mapping[str, Any]) -> Mapping[str, Any]:
        """The group with its decoded tokens as messages; as it is where they cannot be decoded, which checks tell."""
        try:
            texts = [self._env.tokenizer.decode(tokens) for tokens in group["tokens"]]
        except Exception as error:  # noqa: BLE001  tokens of an environment can be anything
            logger.warning("cannot decode the tokens of a group into messages: %s", describe(error))
            return group
        return {**group, "messages": [[{"role": "user", "content": text}] for text in texts]}

    async def _pass_on(self, checked: CheckedGroup, flight: Flight, group: Mapping[str, Any]) -> None:
        """To the trainer, then into the file. From here on the sender tells what becomes of the group."""
        if self.destination is None:
            raise ContractError("groups can only be sent while the environment serves", "pass do_send_to_api=False")
        flight.hand_over()
        try:
            # Its age counts from here: if it counted from its start, slow rollouts would all be stale.
            await self.destination.submit(checked, flight.group_id, self._runtime.trainer.step)
        except Exception:
            flight.take_back()
            raise
        self.submitted += 1
        self._env.items_sent_this_step += 1
        try:
            await self._write(group, checked)
        except OSError as error:
            logger.error("group %d is not in the file of groups: %s", flight.group_id, error)

    async def _end_in_file(self, checked: CheckedGroup, flight: Flight, group: Mapping[str, Any]) -> None:
        """Where nothing is sent, the file is the destination."""
        size = await self._write(group, checked)
        flight.hand_over()
        (current_flight.get() or flight).written = True
        self._runtime.stream.publish(GroupEnqueued, group_id=flight.group_id, raw_bytes=size, wire_bytes=size)
        received = DeliveredAs.RECEIVED
        self._runtime.stream.publish(GroupDelivered, group_id=flight.group_id, reason=received, latency=0.0, attempts=1)

    async def _write(self, group: Mapping[str, Any], checked: CheckedGroup) -> int:
        """One line in the file of groups, if there is one: what the trainer gets and the environment's further keys."""
        if self._env.jsonl_writer is None:
            return 0
        return await self._off_loop(self._env.jsonl_writer.write, {**group, **checked.body})

    async def _show(self, group: Mapping[str, Any], checked: CheckedGroup, item: Any) -> None:
        """The rollout table gets its rows when the group is safe."""
        limit = self._env.config.worker_timeout
        try:
            shown = {**group, **checked.body}
            await self._runtime.calls.run(
                self._env.add_rollouts_for_wandb, shown, item, limit=limit if limit > 0 else None
            )
        except Exception as error:
            logger.error("add_rollouts_for_wandb: %s", describe(error), exc_info=error)

    async def finish(self, seconds: float) -> None:
        """Let groups that are here reach their outcome for so many seconds, then put them back."""
        if not self._under_way:
            return
        _, late = await asyncio.wait(set(self._under_way), timeout=seconds)
        for work in late:
            work.cancel()
        if late:
            await asyncio.wait(late, timeout=seconds)

    def close(self) -> None:
        self._thread.shutdown(wait=False)

    async def _off_loop(self, function: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
