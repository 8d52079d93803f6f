"""Calls a blocking handler in the caller's thread."""

from __future__ import annotations

from perdure.clock import Clock
from perdure.domain.jobs.outcome import Outcome
from perdure.flows.park import parked_in
from perdure.hooks.around import RunCoroutine
from perdure.policy.retries.triage import classify
from perdure.worker.attempt.context.context import CURRENT, Context
from perdure.worker.attempt.outcomes import NOTHING, AttemptInterrupted, done, unreadable
from perdure.worker.attempt.running import Running


def call_blocking(running: Running, context: Context, clock: Clock, run: RunCoroutine) -> Outcome:
    """Call the handler of an attempt and return its outcome; an interruption is raised.

    Async middleware runs on the event loop behind `run`.
    """
    kind = running.kind
    try:
        args, kwargs = kind.signature.decode(running.claim.args)
    except Exception as error:  # noqa: BLE001 - the types of a job's arguments are the app's own code
        return unreadable(error)
    CURRENT.set(context)
    try:
        result = kind.hooks.call_blocking(kind.handler, context, kind.with_context(context, args), kwargs, run)
        return NOTHING if result is None else done(result)
    except (AttemptInterrupted, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001 - any error of a handler is its outcome
        if running.followed:
            running.exception = error
        return parked_in(error) or classify(error, kind.triage, now=clock.now())
