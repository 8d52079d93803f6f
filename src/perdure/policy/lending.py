"""What of a gate is lent to the worker that asks, so that it need not ask for every job (G8).

To count over a whole fleet takes a round to the database for each job. While a gate is far from its limit that is a
high price for a foregone answer. So a worker keeps what it was given: a slot when its job has ended, for the next job
of the same key; a start once its time is over, because a rate of `n` in `per` is the same as `n` slots of which each is
taken for that long. Of starts it is also given as many again as it used lately, or a fiftieth. What is lent counts for
everybody as used, whether it is or not, so no limit is ever passed. What was not used for a second goes back, and at
once where somebody waits for it.

Lent is at most half of a gate's slots and a quarter of a rate, of limits large enough for that to mean something, and
of rates over a short time: a job that is held because a start is lent in vain waits for no longer than that. A job that
has to ask anyhow, for a budget or a breaker or because it comes back, borrows nothing. Where jobs stand in line nothing
is lent, nor where starts are counted over a longer time by others, who would not see how many there were. They wait
while any are lent. Kinds that share a gate and differ about its limit borrow nothing of it: what is lent to the one of
them that allows less would let it pass although the other has gone beyond that.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from perdure.domain.gate import GateRequest

FEWEST: Final = 10
"""The smallest limit of which something is lent."""

LONGEST: Final = timedelta(seconds=10)
"""The longest `per` of a rate of which something is lent."""

SLOTS: Final = timedelta(0)
"""The `per` of a loan of slots."""

_SLOTS_LENT: Final = 2  # one in so many may be lent
_STARTS_LENT: Final = 4  # with the half that may have begun unseen this is still short of what is warned of
_AHEAD: Final = 50  # one in so many is lent before it is needed


def may_borrow(request: GateRequest) -> bool:
    """Whether all that this request asks for is of the sort that is lent, and each gate is named once."""
    if not request.borrows or not request.claim.is_fresh or request.budgets or request.breaker is not None:
        return False
    rates, slots = request.rates, request.concurrency
    if len(rates) > 1 and len({check.key for check in rates}) < len(rates):
        return False
    if len(slots) > 1 and len({check.key for check in slots}) < len(slots):
        return False
    return all(check.limit >= FEWEST and check.per <= LONGEST for check in rates) and all(
        check.limit >= FEWEST for check in slots
    )


def may_lend_slot(used: int, limit: int) -> bool:
    """Whether another slot is lent, when so many are used or lent already."""
    return _SLOTS_LENT * (used + 1) <= limit


def may_lend_start(used: int, limit: int) -> bool:
    """Whether another start is lent, when so many are lent already or have begun just now."""
    return _STARTS_LENT * (used + 1) <= limit


def lent_ahead(used_lately: int, used: int, limit: int) -> int:
    """How many starts are lent that are not needed yet."""
    return max(min(max(used_lately, limit // _AHEAD), limit // _STARTS_LENT - used), 0)
