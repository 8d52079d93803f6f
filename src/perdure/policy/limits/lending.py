"""Loans: the part of a gate that is lent to a worker, so that it does not have to ask for every job (G8).

Counting over a whole fleet takes a database round trip for each job. While a gate is far from its limit, the answer is
certain, and the round trip is wasted. So a worker keeps what it got: a slot when its job has ended, for the next job of
the same key; a start once its time is over, because a rate of `n` in `per` is the same as `n` slots, each taken for
that long. It also gets starts in advance: as many as it used recently, or a fiftieth of the limit. Loans count for
everyone as used, whether they are or not, so no limit is ever exceeded. A loan that was not used for a second goes
back, and at once if a job waits for it.

At most half of a gate's slots and a quarter of a rate are lent; only of limits large enough for that to matter, and of
rates over a short time: a job that is held because of an unused loan waits no longer than that. A job that has to ask
anyhow (it has a budget or a breaker, or comes back) borrows nothing. Nothing is lent where jobs stand in line, nor
where other kinds count starts over a longer time, because they would not see how many there were; they wait while any
are lent. Kinds that share a gate and declare different limits borrow nothing: a loan to the kind with the lower limit
would let it pass although the other kind has exceeded that limit.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from perdure.domain.gate import GateRequest

SMALLEST_LENT_LIMIT: Final = 10
"""Gates with a smaller limit lend nothing."""

LONGEST_LOAN: Final = timedelta(seconds=10)
"""Rates with a longer `per` lend nothing."""

SLOTS: Final = timedelta(0)
"""The `per` of a loan of slots."""

_ONE_SLOT_LENT_IN: Final = 2  # one in so many may be lent
_ONE_START_LENT_IN: Final = 4  # with the half that may have begun unseen, this is still below the warning share
_ONE_LENT_AHEAD_IN: Final = 50  # one in so many is lent in advance


def may_borrow(request: GateRequest) -> bool:
    """Whether everything in this request can be lent, and each gate is named once."""
    if not request.borrows or not request.claim.is_fresh or request.budgets or request.breaker is not None:
        return False
    rates, slots = request.rates, request.concurrency
    if len(rates) > 1 and len({check.key for check in rates}) < len(rates):
        return False
    if len(slots) > 1 and len({check.key for check in slots}) < len(slots):
        return False
    return all(check.limit >= SMALLEST_LENT_LIMIT and check.per <= LONGEST_LOAN for check in rates) and all(
        check.limit >= SMALLEST_LENT_LIMIT for check in slots
    )


def may_lend_slot(used: int, limit: int) -> bool:
    """Whether another slot is lent, when so many are used or lent already."""
    return _ONE_SLOT_LENT_IN * (used + 1) <= limit


def may_lend_start(used: int, limit: int) -> bool:
    """Whether another start is lent, when so many are lent already or have begun just now."""
    return _ONE_START_LENT_IN * (used + 1) <= limit


def lent_ahead(used_lately: int, used: int, limit: int) -> int:
    """How many starts are lent in advance."""
    return max(min(max(used_lately, limit // _ONE_LENT_AHEAD_IN), limit // _ONE_START_LENT_IN - used), 0)
