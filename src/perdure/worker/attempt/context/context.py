"""The context of an attempt, as its handler sees it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from contextvars import ContextVar
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from perdure.domain.duration import Duration, parse_duration
from perdure.domain.gate import BudgetCheck
from perdure.domain.jobs.ids import JobId
from perdure.domain.jobs.job import Claim
from perdure.errors import ConflictError, PayloadError
from perdure.flows.journal import Journal
from perdure.flows.step_gates import StepGate
from perdure.kinds.encoding import from_plain
from perdure.policy.limits.gates import Breaker, Gate
from perdure.policy.retries.triage import Triage
from perdure.policy.secrets.redaction import known_secrets
from perdure.worker.attempt.checkpoints import Checkpoints, cursor_text
from perdure.worker.attempt.context.answers import Answer
from perdure.worker.attempt.context.family_calls import FamilyCalls
from perdure.worker.attempt.context.stop_flag import StopFlag
from perdure.worker.attempt.effects import AttemptEffects, EffectBlock
from perdure.worker.attempt.log_lines import AttemptLines, Kept
from perdure.worker.attempt.log_secrets import WithoutSecrets
from perdure.worker.attempt.services import NO_SERVICES, Services
from perdure.worker.attempt.spending import Expense, Spending, checked_amount

if TYPE_CHECKING:
    from structlog.stdlib import BoundLogger

Wanted = TypeVar("Wanted")

_LOGGER: Final = "perdure.job"
_NOTHING_SPENT: Final = frozenset[str | None]()


class Context(FamilyCalls):
    """The current attempt. Request it with a first parameter called `ctx` or typed `Context`."""

    __slots__ = ("_claim", "_cursor", "_flag", "_services", "_spent", "_started", "_triage")

    def __init__(
        self,
        claim: Claim,
        flag: StopFlag,
        services: Services = NO_SERVICES,
        *,
        started: float = 0.0,
        triage: Triage | None = None,
        blocking: bool = False,
    ) -> None:
        self._claim = claim
        self._flag = flag
        self._services = services
        self._started = started
        self._triage = triage
        self._blocking = blocking
        self._cursor = claim.cursor
        self._spent: frozenset[str | None] = _NOTHING_SPENT
        self.opened: Journal | None = None
        self.effects: AttemptEffects | None = None
        self.lines: AttemptLines | None = None
        self.step_budgets: dict[str, BudgetCheck] | None = None

    @property
    def job_id(self) -> JobId:
        """The job's id."""
        return self._claim.job_id

    @property
    def ref(self) -> str | None:
        """The job's external name (`using(ref=...)`); None: it has none."""
        return self._claim.ref

    @property
    def kind(self) -> str:
        """The job's kind."""
        return self._claim.kind

    @property
    def queue(self) -> str:
        """The job's queue."""
        return self._claim.queue

    @property
    def attempt(self) -> int:
        """The number of this attempt, starting at 1."""
        return self._claim.attempt

    @property
    def failures(self) -> int:
        """How many attempts have failed before this one."""
        return self._claim.failures

    @property
    def token(self) -> int:
        """Rises with every claim of this job: pass it to outside systems, so that they can refuse an older attempt."""
        return self._claim.token

    @property
    def since(self) -> datetime:
        """When this life of the job became due."""
        return self._claim.since

    @property
    def claimed_at(self) -> datetime:
        """When this attempt was claimed."""
        return self._claim.claimed_at

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags given at enqueue."""
        return self._claim.tags

    @property
    def meta(self) -> dict[str, Any]:
        """The metadata given at enqueue."""
        return msgspec.json.decode(self._claim.meta, type=dict[str, Any]) if self._claim.meta else {}

    @property
    def nominal_at(self) -> datetime | None:
        """The nominal time for which a schedule made this job; None: no schedule made it."""
        time = self.meta.get("nominal_at") if "schedule" in self.meta else None
        return None if time is None else datetime.fromisoformat(time)

    @property
    def closing(self) -> bool:
        """Whether the worker is stopping: finish soon, or checkpoint and raise `Release()`.

        A handler that does neither is told to stop shortly before the stop timeout ends.
        """
        return self._flag.closing

    def wait_closing(self, timeout: Duration | None = None) -> Answer[bool]:
        """Sleep up to this time; True: the worker is stopping or this attempt must end. False: the time is up.

        `await ctx.wait_closing("5m")` in an async handler, without `await` in a sync one.
        """
        seconds = None if timeout is None else parse_duration("timeout", timeout).total_seconds()
        if not self._blocking:
            return Answer("ctx.wait_closing()", coming=self._wait_closing(seconds))
        raised = threading.Event()
        with self._flag.calling(raised.set):
            raised.wait(seconds)
        return Answer("ctx.wait_closing()", self._flag.is_raised)

    async def _wait_closing(self, seconds: float | None) -> bool:
        loop, raised = asyncio.get_running_loop(), asyncio.Event()
        with self._flag.calling(lambda: loop.call_soon_threadsafe(raised.set)), suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await raised.wait()
        return self._flag.is_raised

    @property
    def stopping(self) -> str | None:
        """Why this attempt should end now (cancelled, out of time, …); None: continue."""
        return self._flag.reason

    @property
    def cursor(self) -> Any:
        """The last checkpoint of this job, as plain JSON data; None: there is none."""
        return None if self._cursor is None else msgspec.json.decode(self._cursor)

    def read_cursor(self, wanted: type[Wanted]) -> Wanted | None:
        """The last checkpoint as a value of this type, which may be a dataclass, a struct or a pydantic model."""
        if self._cursor is None:
            return None
        try:
            return msgspec.json.decode(self._cursor, type=wanted, dec_hook=from_plain)
        except (msgspec.MsgspecError, ValueError, NotImplementedError) as error:
            raise PayloadError("cursor", f"is not of type {wanted.__name__}: {error}") from error

    def checkpoint(self, cursor: Any) -> Answer[None]:
        """Store the progress of this job: the next attempt finds it as `ctx.cursor`.

        `await ctx.checkpoint(page)` in an async handler, without `await` in a sync one. The cursor is any value that
        can be stored as JSON, up to 64 KiB; None removes the checkpoint. It is durable when the call returns. If this
        attempt has lost its claim, nothing is written, ConflictError is raised, and the attempt is stopped.
        """
        text = cursor_text(cursor)
        checkpoints = self._services.checkpoints
        if checkpoints is None:
            raise ConflictError("ctx.checkpoint() needs a worker")
        if self.effects is not None:
            raise ConflictError(
                "ctx.checkpoint() after ctx.transaction(): it would be kept even if the transaction is rolled back;"
                " checkpoint first, or let the transaction be the record"
            )
        if not self._blocking:
            return Answer("ctx.checkpoint()", coming=self._checkpoint(checkpoints, text))
        self._note(text, kept=checkpoints.keep_from_thread(self._claim, text))
        return Answer("ctx.checkpoint()")

    async def _checkpoint(self, checkpoints: Checkpoints, text: str | None) -> None:
        self._note(text, kept=await checkpoints.keep(self._claim, text))

    def _note(self, text: str | None, *, kept: bool) -> None:
        self._demand(held=kept)
        self._cursor = text

    def spend(self, amount: float, budget: str | None = None) -> Answer[None]:
        """Record what this attempt has spent. The first call replaces the budget's estimate; further calls add up.

        `await ctx.spend(0.42)` in an async handler, without `await` in a sync one. `budget` is the name of a Budget
        among the gates of the job or of a step; omit it if there is only one. The amount is recorded when the call
        returns, and stays even if the attempt fails. If this attempt has lost its claim, nothing is recorded,
        ConflictError is raised, and the attempt is stopped.
        """
        expense = Expense(checked_amount(amount), budget, budget not in self._spent, self._budget_of_step(budget))
        spending = self._services.spending
        if spending is None:
            raise ConflictError("ctx.spend() needs a worker")
        if self.effects is not None:
            raise ConflictError(
                "ctx.spend() after ctx.transaction(): it would be recorded even if the transaction is rolled back;"
                " record the spending first"
            )
        if not self._blocking:
            return Answer("ctx.spend()", coming=self._spend(spending, expense))
        self._note_spent(budget, kept=spending.spend_from_thread(self._claim, expense))
        return Answer("ctx.spend()")

    async def _spend(self, spending: Spending, expense: Expense) -> None:
        self._note_spent(expense.budget, kept=await spending.spend(self._claim, expense))

    def _note_spent(self, budget: str | None, *, kept: bool) -> None:
        self._demand(held=kept)
        self._spent |= {budget}

    def _budget_of_step(self, name: str | None) -> BudgetCheck | None:
        """A budget of this name before a step of this attempt; None: the only one."""
        met = self.step_budgets
        if not met or (name is None and len(met) > 1):
            return None
        return next(iter(met.values())) if name is None else met.get(name)

    def _demand(self, *, held: bool) -> None:
        if not held:
            raise ConflictError(
                f"this attempt of job {self.job_id} has lost its claim: another one may run already; stop at once"
            )

    def transaction(self) -> EffectBlock:
        """A database connection whose writes commit together with this attempt's acknowledgement, or not at all.

        `async with ctx.transaction() as connection:` in an async handler, `with` in a sync one. On PostgreSQL it is a
        psycopg AsyncConnection (in a sync handler: Connection), on SQLite the apsw or sqlite3 connection of the app's
        driver. The transaction stays open after the block, and further blocks join it; a block that raises undoes its
        own writes. When the handler returns (or raises Finish), everything is committed with the acknowledgement; if it
        raises anything else, is stopped, or has lost its claim, everything is rolled back. Do not COMMIT or ROLLBACK:
        the worker does. To enqueue a job exactly once, use `using(connection=connection)`.

        On SQLite the transaction holds the file's one write lock until the handler ends, and all other writers wait,
        including the worker's heartbeat: do slow work first, then open the block, write, and return. A plain `enqueue`
        inside the block would deadlock.
        """
        store = self._services.effects
        if store is None:
            raise ConflictError(
                "ctx.transaction() needs a worker in the same process: it cannot be used with isolate=True"
            )
        if self.effects is None:
            self.effects = AttemptEffects(store, self._kept_lines(), blocking=self._blocking)
            if self.opened is not None:
                self.opened.effects = self.effects
        return EffectBlock(self.effects)

    @property
    def log(self) -> BoundLogger:
        """A logger bound to the job. The newest lines are also stored with the job."""
        import structlog  # noqa: PLC0415 - it is slow to load, and a producer needs no log

        logger: BoundLogger
        lines = self._kept_lines()
        keeping = [] if lines is None else [Kept(lines)]
        processors = [WithoutSecrets(self._secrets), *keeping, *structlog.get_config()["processors"]]
        logger = structlog.wrap_logger(None, processors, logger_factory_args=(_LOGGER,))
        traced = self._services.hooks.log_fields()
        return logger.bind(job_id=self.job_id, kind=self.kind, attempt=self.attempt, **traced)

    def _secrets(self) -> tuple[str, ...]:
        if self.opened is not None:
            return self.opened.secrets()
        return known_secrets(self._claim.args, self._claim.meta)

    def _kept_lines(self) -> AttemptLines | None:
        open_lines = self._services.open_lines
        if self.lines is None and open_lines is not None:
            self.lines = open_lines(self._claim, started=self._started, blocking=self._blocking)
        return self.lines

    def _new_gate(self, key: str, gates: Sequence[Gate], breaker: Breaker | None) -> StepGate:
        open_gate = self._services.open_gate
        if open_gate is None:
            raise ConflictError("ctx.step() with gates needs a worker")
        return open_gate(self._claim, key, gates, breaker)

    def _new_journal(self) -> Journal | None:
        open_journal = self._services.open_journal
        if open_journal is None:
            return None
        return open_journal(
            self._claim, self._flag, started=self._started, triage=self._triage, blocking=self._blocking
        )


CURRENT: Final[ContextVar[Context | None]] = ContextVar("perdure_context", default=None)


def current_context() -> Context | None:
    """The context of the current attempt, if any."""
    return CURRENT.get()
