"""What a handler may know of its own attempt."""

from __future__ import annotations

from contextvars import ContextVar
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from perdure.domain.ids import JobId
from perdure.domain.job import Claim
from perdure.errors import ConflictError
from perdure.storage.port import EffectStore
from perdure.worker.effects import AttemptEffects, EffectBlock

if TYPE_CHECKING:
    from structlog.stdlib import BoundLogger


class StopFlag:
    """Says that an attempt should end, and why; read by handlers, written by the worker."""

    __slots__ = ("closing", "reason")

    def __init__(self) -> None:
        self.reason: str | None = None
        self.closing = False


class Context:
    """The attempt that is running now. Ask for it with a first parameter called `ctx` or typed `Context`."""

    __slots__ = ("_blocking", "_claim", "_flag", "_store", "effects")

    def __init__(
        self, claim: Claim, flag: StopFlag, store: EffectStore | None = None, *, blocking: bool = False
    ) -> None:
        self._claim = claim
        self._flag = flag
        self._store = store
        self._blocking = blocking
        self.effects: AttemptEffects | None = None

    @property
    def job_id(self) -> JobId:
        """The job's id."""
        return self._claim.job_id

    @property
    def kind(self) -> str:
        """The job's kind."""
        return self._claim.kind

    @property
    def queue(self) -> str:
        """The queue the job came from."""
        return self._claim.queue

    @property
    def attempt(self) -> int:
        """The number of this attempt, counting from 1."""
        return self._claim.attempt

    @property
    def failures(self) -> int:
        """How many attempts have failed before this one."""
        return self._claim.failures

    @property
    def token(self) -> int:
        """Rises with every claim of this job: hand it to outside systems, so that they can refuse an older attempt."""
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
        """The tags given when the job was enqueued."""
        return self._claim.tags

    @property
    def meta(self) -> dict[str, Any]:
        """The metadata given when the job was enqueued."""
        return msgspec.json.decode(self._claim.meta, type=dict[str, Any]) if self._claim.meta else {}

    @property
    def closing(self) -> bool:
        """Whether the worker is stopping: finish or give up soon."""
        return self._flag.closing

    @property
    def stopping(self) -> str | None:
        """Why this attempt should end now (cancelled, out of time, …); None: go on."""
        return self._flag.reason

    def transaction(self) -> EffectBlock:
        """A database connection whose writes commit together with this attempt's acknowledgement, or not at all.

        `async with ctx.transaction() as connection:` in an async handler, `with` in a sync one. On PostgreSQL it is
        a psycopg AsyncConnection (in a sync handler: Connection), on SQLite the apsw or sqlite3 connection of the
        app's driver. The transaction stays open after the block, and further blocks join it; a block that raises
        undoes its own writes. When the handler returns (or raises Finish), everything is committed with the
        acknowledgement; if it raises anything else, is stopped, or has lost its claim, everything is rolled back.
        Leave COMMIT and ROLLBACK to the worker, and enqueue with `using(connection=connection)` what is to be
        enqueued exactly once.

        On SQLite it holds the file's one write lock until the handler ends, and all other writers wait, the
        worker's own heartbeat among them: do slow work first, then open the block, write, and return. A plain
        `enqueue` inside would wait for itself.
        """
        if self._store is None:
            raise ConflictError(
                "ctx.transaction() needs a worker in the same process: it cannot be used with isolate=True"
            )
        if self.effects is None:
            self.effects = AttemptEffects(self._store, blocking=self._blocking)
        return EffectBlock(self.effects)

    @property
    def log(self) -> BoundLogger:
        """A logger that knows the job."""
        import structlog  # noqa: PLC0415 - it is slow to load, and a producer needs no log

        logger: BoundLogger = structlog.stdlib.get_logger("perdure.job")
        return logger.bind(job_id=self.job_id, kind=self.kind, attempt=self.attempt)


CURRENT: Final[ContextVar[Context | None]] = ContextVar("perdure_context", default=None)


def current_context() -> Context | None:
    """The context of the attempt that the caller is part of, if any."""
    return CURRENT.get()
