"""Which groups are asked for, and in which order."""

from __future__ import annotations

from typing import NamedTuple

from atropos_tui.errors import UsageError

ORDERS = ("time", "score", "len", "step", "took", "outcome", "reason")


class GroupQuery(NamedTuple):
    """Which groups in which order, as it goes over the wire.

    `order` is one of `ORDERS`, with a minus for the highest (or newest) first. `only` and `but` are numbers of groups:
    none others, and not these.
    """

    filter: str = ""
    order: str = "-time"
    only: tuple[int, ...] | None = None
    but: tuple[int, ...] = ()

    @property
    def by_time(self) -> bool:
        """Whether it is the usual order, newest first, which alone can be paged by group."""
        return self.order == "-time"


ALL_GROUPS = GroupQuery()


def check_order(order: str) -> str:
    """Raises UsageError for an order that is not there."""
    if order.removeprefix("-") not in ORDERS:
        raise UsageError(f"there is no order {order!r}", f"the orders are {', '.join(ORDERS)}")
    return order
