"""The constants that SQL of both engines takes from the code: `{HELD_KEY_WAIT}` in a statement is one.

A rule, limit or text is thus written once, in Python, and each engine writes it in its own dialect. Constants are
filled in as literals, not bound as parameters: a planner uses a partial index only if it knows the value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

from perdure.domain.flows.flow import StepState
from perdure.domain.jobs.outcome import ERROR_LIMIT_CHARACTERS
from perdure.domain.jobs.states import Reason
from perdure.domain.operate.access import TOKEN_USE_NOTED_EVERY
from perdure.domain.operate.audit import HANDLER, SYSTEM, Audited
from perdure.engines.shared.batch_sizes import THROTTLE_KEYS_FORGOTTEN_AT_ONCE, WAITING_FOR_KEYS_LOOKED_AT
from perdure.engines.shared.claim_tokens import HIGHEST_TOKEN_BY_CLOCK, TOKENS_PER_MS
from perdure.engines.shared.gates.spend_spans import DAY, HOUR, MINUTE
from perdure.engines.shared.seq_marks import SEQ_MARKED_EVERY, SEQ_MARKS_KEPT
from perdure.policy.clock_slack import CLOCK_SLACK
from perdure.policy.consequences import HELD_KEY_WAIT, JOB_DELETED
from perdure.policy.limits.pausing import PAUSE_NOTE
from perdure.policy.retention import BULKS_KEPT, DEAD_WORKERS_KEPT, NOMINAL_TIMES_KEPT

CONSTANTS: Final[Mapping[str, timedelta | int | str]] = {
    "ACTION_CANCEL": Audited.CANCEL.action,
    "ACTOR_HANDLER": HANDLER,
    "ACTOR_SYSTEM": SYSTEM,
    "BULKS_KEPT": BULKS_KEPT,
    "CLOCK_SLACK": CLOCK_SLACK,
    "DAY": DAY,
    "DEAD_WORKERS_KEPT": DEAD_WORKERS_KEPT,
    "ERROR_LIMIT_CHARACTERS": ERROR_LIMIT_CHARACTERS,
    "HELD_KEY_WAIT": HELD_KEY_WAIT,
    "HIGHEST_TOKEN_BY_CLOCK": HIGHEST_TOKEN_BY_CLOCK,
    "HOUR": HOUR,
    "JOB_DELETED": JOB_DELETED,
    "MINUTE": MINUTE,
    "NOMINAL_TIMES_KEPT": NOMINAL_TIMES_KEPT,
    "PAUSE_NOTE": PAUSE_NOTE,
    "SEQ_MARKED_EVERY": SEQ_MARKED_EVERY,
    "SEQ_MARKS_KEPT": SEQ_MARKS_KEPT,
    "STEP_GIVEN_UP": StepState.GIVEN_UP.value,
    "THROTTLE_KEYS_FORGOTTEN_AT_ONCE": THROTTLE_KEYS_FORGOTTEN_AT_ONCE,
    "TOKENS_PER_MS": TOKENS_PER_MS,
    "TOKEN_USE_NOTED_EVERY": TOKEN_USE_NOTED_EVERY,
    "WAITING_FOR_KEYS_LOOKED_AT": WAITING_FOR_KEYS_LOOKED_AT,
    **{f"REASON_{reason.name}": reason.value for reason in Reason},
}
"""By the name of the slot, which is in capitals; slots in small letters are names of tables."""


def constant(slot: str, write_span: Callable[[timedelta], str]) -> str:
    """The SQL of the constant in this slot; `write_span` writes a span of time."""
    value = CONSTANTS[slot]
    if isinstance(value, timedelta):
        return write_span(value)
    return str(value) if isinstance(value, int) else "'{}'".format(value.replace("'", "''"))
