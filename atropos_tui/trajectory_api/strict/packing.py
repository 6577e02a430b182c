"""How upstream makes batches: of packs, which are groups of one size that add up to the largest group's size."""

from __future__ import annotations

from atropos_tui.trajectory_api.group import QueuedGroup


def batch_of_packs(line: list[QueuedGroup], target: int) -> list[QueuedGroup] | None:
    """The groups that come first in the packs, if some number of them has just the target's sequences."""
    sequences = 0
    packed = _packs(line, max((group.sequences for group in line), default=0))
    for index, group in enumerate(packed):
        sequences += group.sequences
        if sequences == target:
            return packed[: index + 1]
        if sequences > target:
            return None
    return None


def batch_with_minimums(line: list[QueuedGroup], target: int, shares: dict[int, float]) -> list[QueuedGroup] | None:
    """Every environment's minimum from its own packs first, then whatever comes in the queue and still fits."""
    largest = max((group.sequences for group in line), default=0)
    senders = dict.fromkeys(group.env_id for group in line if group.env_id is not None)
    packed = {env_id: _packs([group for group in line if group.env_id == env_id], largest) for env_id in senders}
    due = {env_id: least for env_id, share in shares.items() if (least := int(target * share)) > 0}
    if any(not packed.get(env_id) for env_id in due):
        return None
    claimed = sum(due.values())
    if claimed > target:
        smallest = {env_id: min(group.sequences for group in packed[env_id]) for env_id in due}
        due = {env_id: max(smallest[env_id], int(least * target / claimed)) for env_id, least in due.items()}
    batch: list[QueuedGroup] = []
    total = 0
    for env_id, least in due.items():
        taken = 0
        for group in packed[env_id]:
            if taken < least and total + group.sequences <= target:
                batch.append(group)
                taken += group.sequences
                total += group.sequences
    chosen, packable = set(map(id, batch)), {id(group) for groups in packed.values() for group in groups}
    for group in line:
        if id(group) in packable and id(group) not in chosen and total + group.sequences <= target:
            batch.append(group)
            total += group.sequences
    return batch if total == target else None


def _packs(line: list[QueuedGroup], largest: int) -> list[QueuedGroup]:
    """The groups that belong to complete packs, in the order in which the packs become complete."""
    incomplete: dict[int, list[QueuedGroup]] = {}
    packed: list[QueuedGroup] = []
    for group in line:
        pack = incomplete.setdefault(group.sequences, [])
        pack.append(group)
        if len(pack) * group.sequences == largest:
            packed += pack
            pack.clear()
    return packed
