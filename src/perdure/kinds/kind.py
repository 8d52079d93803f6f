"""One kind of job: a name, its handler, and how its attempts run and are judged."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from typing import Any

from msgspec import Struct

from perdure.domain.jobs.job import DEFAULT_CRASH_LIMIT, DEFAULT_PRIORITY, DEFAULT_QUEUE
from perdure.hooks.hooks import NO_HOOKS, Hooks
from perdure.kinds.signature import Signature
from perdure.policy.bounds import NO_BOUNDS, Bounds
from perdure.policy.keys.fairness import FairShare
from perdure.policy.keys.uniqueness import Unique
from perdure.policy.limits.gates import Breaker, Budget, Gate, Rate
from perdure.policy.retries.retry import Retry, RetrySource, read_policy
from perdure.policy.retries.triage import Triage


class Mode(StrEnum):
    """Where attempts run."""

    TASK = "task"  # an async handler, on the worker's event loop
    THREAD = "thread"  # a plain function, in a thread of the worker
    PROCESS = "process"  # an async handler or a plain function, in a process of its own


class Kind(Struct, frozen=True, kw_only=True, weakref=True):
    """Everything declared about a kind of job with `@app.job`."""

    name: str
    handler: Callable[..., Any]
    signature: Signature
    mode: Mode
    retry: RetrySource
    triage: Triage | None = None
    queue: str = DEFAULT_QUEUE
    priority: int = DEFAULT_PRIORITY
    unique: Unique | None = None
    timeout: timedelta | None = None
    memory: int | None = None  # bytes; isolated attempts only
    crash_limit: int = DEFAULT_CRASH_LIMIT
    gates: tuple[Gate, ...] = ()
    breaker: Breaker | None = None
    fair: FairShare | None = None
    bounds: Bounds = NO_BOUNDS
    hooks: Hooks = NO_HOOKS  # of its app

    def with_context(self, context: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The positional arguments of the handler, with the context first if it takes one."""
        return (context, *args) if self.signature.takes_context else args

    @property
    def is_gated(self) -> bool:
        """Whether a job of this kind must pass gates before it runs."""
        return bool(self.gates) or self.breaker is not None

    @property
    def charges_starts(self) -> bool:
        """Whether it matters that an attempt has already passed its gates."""
        return any(isinstance(gate, Rate | Budget) and gate.counts == "attempts" for gate in self.gates)

    @property
    def budgets(self) -> dict[str, Budget]:
        """The budgets that jobs of this kind may spend from, by name."""
        return {gate.name: gate for gate in self.gates if isinstance(gate, Budget)}

    @property
    def attempts(self) -> int | None:
        """The maximum number of attempts by the current policy; None: no limit.

        For display only: the policy itself judges each failure when it happens. If a policy function raises, its
        exception is raised here.
        """
        if type(self.retry) is Retry:
            return self.retry.most_attempts
        try:
            return read_policy(self.retry).most_attempts
        except Exception as error:
            error.add_note(f"while reading the retry policy of job {self.name}")
            raise


def is_async(handler: Callable[..., Any]) -> bool:
    """Whether the handler returns an awaitable."""
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(getattr(handler, "__call__", None))  # noqa: B004 - asked of callable objects


Registry = dict[str, Kind]
