"""One transition of every kind, for tests that must hold for all of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from tests.support.builders.jobs import A_FAILURE, MINUTE

from perdure.domain.jobs import transition
from perdure.domain.jobs.job import Claim
from perdure.domain.jobs.states import Reason
from perdure.domain.jobs.transition import Transition

Decision = Callable[[Claim], Transition]

EVERY_TRANSITION: dict[str, Decision] = {
    "succeeded": lambda claim: transition.succeeded(claim, '{"sum":3}', ()),
    "succeeded without a result": lambda claim: transition.succeeded(claim, None, ()),
    "succeeded with warnings": lambda claim: transition.succeeded(claim, None, ("no screenshots", "slow")),
    "failed": lambda claim: transition.retrying(claim, Reason.FAILED, A_FAILURE, MINUTE),
    "failed, again at once": lambda claim: transition.retrying(claim, Reason.FAILED, A_FAILURE, timedelta(0)),
    "timed out": lambda claim: transition.retrying(claim, Reason.TIMED_OUT, A_FAILURE, MINUTE),
    "exhausted": lambda claim: transition.died(claim, Reason.EXHAUSTED, A_FAILURE),
    "out of time": lambda claim: transition.died(claim, Reason.OUT_OF_TIME, A_FAILURE),
    "permanent": lambda claim: transition.died(claim, Reason.PERMANENT, A_FAILURE),
    "bad arguments": lambda claim: transition.died(claim, Reason.BAD_ARGUMENTS, A_FAILURE),
    "unhandled": lambda claim: transition.unhandled(claim, A_FAILURE),
    "crashed": lambda claim: transition.crashed(claim, A_FAILURE),
    "crashed for good": lambda claim: transition.crashed_for_good(claim, A_FAILURE),
    "snoozed": lambda claim: transition.waiting(claim, Reason.SNOOZED, MINUTE),
    "still pending": lambda claim: transition.waiting(claim, Reason.STILL_PENDING, MINUTE),
    "paused": lambda claim: transition.paused(claim, Reason.PAUSED, MINUTE),
    "paused until resumed": lambda claim: transition.paused(claim, Reason.PAUSED, None),
    "deferred": lambda claim: transition.paused(claim, Reason.UNKNOWN_KIND, MINUTE),
    "released": transition.released,
    "released for later": lambda claim: transition.paused(claim, Reason.RELEASED, MINUTE),
    "cancelled": lambda claim: transition.cancelled(claim, "not wanted"),
}
