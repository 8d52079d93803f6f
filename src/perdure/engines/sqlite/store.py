"""The SQLite engine as one object: every protocol of the port, each answered by its own part."""

from __future__ import annotations

from perdure.clock import Clock, SystemClock
from perdure.engines.sqlite.acknowledgement import AcknowledgementPart
from perdure.engines.sqlite.borrowing import BorrowingPart
from perdure.engines.sqlite.claims import ClaimPart
from perdure.engines.sqlite.commands import CommandPart
from perdure.engines.sqlite.database import Database
from perdure.engines.sqlite.diagnosis import DiagnosisPart
from perdure.engines.sqlite.drivers import check_driver
from perdure.engines.sqlite.effects import EffectPart
from perdure.engines.sqlite.insight import InsightPart
from perdure.engines.sqlite.intake import IntakePart
from perdure.engines.sqlite.schema import SchemaPart
from perdure.engines.sqlite.signals import SignalPart
from perdure.engines.sqlite.upkeep import UpkeepPart
from perdure.engines.sqlite.workers import WorkerPart


class SqliteStore:
    """A store in one SQLite file on a local disk, shared by any number of processes of one machine.

    `driver` is the SQLite library: apsw, or sqlite3 where the app opens the same file through that one. Tables are
    named `perdure_…`, or begin with `prefix` if one is given. `clock` replaces the machine's clock: for tests.
    """

    def __init__(self, path: str, *, driver: str = "apsw", prefix: str = "", clock: Clock | None = None) -> None:
        self._settings = (path, check_driver(driver), prefix, clock)
        self._database = database = Database(path, driver, prefix, clock or SystemClock())
        acknowledgement = AcknowledgementPart(database)
        claims = ClaimPart(database, acknowledgement)
        upkeep = UpkeepPart(database)
        commands = CommandPart(database, upkeep)
        diagnosis = DiagnosisPart(database)
        insight = InsightPart(database)
        schema = SchemaPart(database)
        signals = SignalPart(database)
        workers = WorkerPart(database)

        self.insert = IntakePart(database).insert
        self.through = BorrowingPart(database).through

        self.claim = claims.claim
        self.acknowledge = acknowledgement.acknowledge
        self.begin_effects = EffectPart(database, acknowledgement).begin_effects

        self.register = workers.register
        self.beat = workers.beat
        self.retire = workers.retire
        self.cancel_requests = workers.cancel_requests
        self.workers = workers.workers

        self.promote = upkeep.promote
        self.bury_silent = workers.bury_silent
        self.bury_gone = workers.bury_gone
        self.orphans = upkeep.orphans
        self.prune = upkeep.prune

        self.now = insight.now
        self.job = insight.job
        self.jobs = insight.jobs
        self.attempts = insight.attempts
        self.counts = insight.counts

        self.requeue = commands.requeue
        self.cancel = commands.cancel
        self.run_now = commands.run_now
        self.purge = commands.purge

        self.ring = signals.ring
        self.wakeups = signals.wakeups

        self.diagnose = diagnosis.diagnose
        self.waiting = diagnosis.waiting

        self.migrate = schema.migrate
        self.check_schema = schema.check_schema
        self.schema_dump = schema.schema_dump

    async def open(self) -> None:
        """Open the file, creating it if there is none. Raises StoreRefused with what to do where it cannot be used."""
        await self._database.open()

    async def close(self) -> None:
        """Finish what was handed in, then let go of the file and end the threads."""
        await self._database.close()

    def abandon(self) -> None:
        """The same once the event loop is closed; blocks meanwhile."""
        self._database.abandon()

    def sibling(self) -> SqliteStore:
        """Another store on the same file with connections of its own, not yet open."""
        path, driver, prefix, clock = self._settings
        return SqliteStore(path, driver=driver, prefix=prefix, clock=clock)
