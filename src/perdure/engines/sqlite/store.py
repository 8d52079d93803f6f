"""The SQLite engine as one object: every protocol of the port, each answered by its own part."""

from __future__ import annotations

from perdure.clock import Clock, SystemClock
from perdure.engines.sqlite.claims.acknowledgements import AcknowledgementPart
from perdure.engines.sqlite.claims.claims import ClaimPart
from perdure.engines.sqlite.claims.effects import EffectPart
from perdure.engines.sqlite.database.database import Database
from perdure.engines.sqlite.database.drivers import check_driver
from perdure.engines.sqlite.database.schema import SchemaPart
from perdure.engines.sqlite.fleet.ends import Ends
from perdure.engines.sqlite.fleet.leaders import LeaderPart
from perdure.engines.sqlite.fleet.signals import SignalPart
from perdure.engines.sqlite.fleet.upkeep import UpkeepPart
from perdure.engines.sqlite.fleet.workers import WorkerPart
from perdure.engines.sqlite.flows.events import EventPart
from perdure.engines.sqlite.flows.families import FamilyPart
from perdure.engines.sqlite.flows.log_lines import LinePart
from perdure.engines.sqlite.flows.progress import ProgressPart
from perdure.engines.sqlite.flows.settling import Settling
from perdure.engines.sqlite.flows.steps import StepPart
from perdure.engines.sqlite.flows.throttle import ThrottlePart
from perdure.engines.sqlite.gates.breakers import BreakerPart
from perdure.engines.sqlite.gates.gates import GatePart
from perdure.engines.sqlite.gates.pauses import PausePart
from perdure.engines.sqlite.gates.spend_sums import SpendSums
from perdure.engines.sqlite.gates.upkeep import GateUpkeepPart
from perdure.engines.sqlite.intake.borrowing import BorrowingPart
from perdure.engines.sqlite.intake.intake import IntakePart
from perdure.engines.sqlite.operate.alerts.alert_rules import AlertRulePart
from perdure.engines.sqlite.operate.alerts.alerts import AlertPart
from perdure.engines.sqlite.operate.backup import BackupPart
from perdure.engines.sqlite.operate.commands.bulk import BulkPart
from perdure.engines.sqlite.operate.commands.commands import CommandPart
from perdure.engines.sqlite.operate.commands.enqueueing import EnqueueingPart
from perdure.engines.sqlite.operate.commands.tokens import TokenPart
from perdure.engines.sqlite.operate.commands.webhooks import WebhookPart
from perdure.engines.sqlite.operate.diagnosis import DiagnosisPart
from perdure.engines.sqlite.operate.event_log import EventLogPart
from perdure.engines.sqlite.operate.views.counting import CountingPart
from perdure.engines.sqlite.operate.views.failure_groups import FailureGroupPart
from perdure.engines.sqlite.operate.views.insight import InsightPart
from perdure.engines.sqlite.operate.views.kinds import KindPart
from perdure.engines.sqlite.operate.views.statistics import StatisticPart
from perdure.engines.sqlite.operate.views.trail import TrailPart
from perdure.engines.sqlite.schedules.firing import FiringPart
from perdure.engines.sqlite.schedules.schedules import SchedulePart


class SqliteStore:
    """A store in one SQLite file on a local disk, shared by any number of processes of one machine.

    `driver` is the SQLite library: apsw, or sqlite3 where the app opens the same file through that one. Tables are
    named `perdure_…`, or begin with `prefix` if one is given. `clock` replaces the machine's clock: for tests.
    """

    def __init__(self, path: str, *, driver: str = "apsw", prefix: str = "", clock: Clock | None = None) -> None:
        self._settings = (path, check_driver(driver), prefix, clock)
        self._database = database = Database(path, driver, prefix, clock or SystemClock())
        intake = IntakePart(database)
        kinds = KindPart(database)
        upkeep = UpkeepPart(database, kinds)
        families = FamilyPart(database, intake)
        settling = Settling(database, upkeep, families)
        events = EventPart(database, upkeep)
        acknowledgement = AcknowledgementPart(database, settling, events, families, kinds)
        claims = ClaimPart(database, acknowledgement)
        commands = CommandPart(database, upkeep, settling)
        diagnosis = DiagnosisPart(database)
        lines = LinePart(database)
        signals = SignalPart(database)
        ends = Ends(database)
        steps = StepPart(database)

        self.insert = intake.insert
        self.through = BorrowingPart(database).through

        self.claim = claims.claim
        self.fronts = claims.fronts
        self.leases = claims.leases
        self.claims_held = claims.claims_held
        self.acknowledge = acknowledgement.acknowledge
        self.checkpoint = claims.checkpoint
        self.begin_effects = EffectPart(database, acknowledgement, steps, lines).begin_effects

        self._add_workers(WorkerPart(database))

        self.promote = upkeep.promote
        self.overdue = upkeep.overdue
        self.hasten = upkeep.hasten
        self.settle_joined = settling.settle_joined
        self.orphans = upkeep.orphans
        self.last_return = upkeep.last_return
        self.prune = upkeep.prune

        self._add_insight(database, kinds)
        self._add_tokens(TokenPart(database))
        self._add_commands(commands, intake)

        self.ring = signals.ring
        self.wakeups = signals.wakeups
        self.await_ends = ends.await_ends
        self.ring_ended = ends.ring_ended
        self.ends = ends.ends

        self.diagnose = diagnosis.diagnose
        self.waiting = diagnosis.waiting
        self.paused = diagnosis.paused
        self.parked_ahead = diagnosis.parked_ahead
        self.redate_parked = diagnosis.redate_parked

        self._add_schema(SchemaPart(database))
        self._add_time(database, FiringPart(database, intake, commands))
        self._add_flows(database, events, families, steps, lines)
        self._add_gates(database, upkeep)

    def _add_insight(self, database: Database, kinds: KindPart) -> None:
        insight, trail = InsightPart(database), TrailPart(database)
        self.declare_kinds = kinds.declare_kinds
        self.kinds = kinds.kinds
        self.now = insight.now
        self.job = insight.job
        self.jobs = insight.jobs
        self.search = insight.search
        self.attempts = insight.attempts
        self.costs = insight.costs
        self.gate_records = insight.gate_records
        self.key_holder = insight.key_holder
        self.counts = insight.counts
        self.count = CountingPart(database).count
        groups = FailureGroupPart(database)
        self.failure_groups = groups.failure_groups
        self.failure_hours = groups.failure_hours
        self.fingerprint_dead = groups.fingerprint_dead
        self.audit = trail.audit
        self.record = trail.record
        self._add_statistics(StatisticPart(database))
        self._add_event_log(EventLogPart(database), WebhookPart(database))

    def _add_tokens(self, tokens: TokenPart) -> None:
        self.add_token = tokens.add_token
        self.tokens = tokens.tokens
        self.revoke_token = tokens.revoke_token
        self.live_token = tokens.live_token
        self.note_use = tokens.note_use
        self.open_session = tokens.open_session
        self.session = tokens.session
        self.close_session = tokens.close_session
        self.shared_key = tokens.shared_key

    def _add_event_log(self, log: EventLogPart, webhooks: WebhookPart) -> None:
        self.switch_event_log = log.switch_event_log
        self.event_log = log.event_log
        self.read_events = log.read_events
        self.forget_events = log.forget_events
        self.save_webhook = webhooks.save_webhook
        self.webhooks = webhooks.webhooks
        self.pause_webhook = webhooks.pause_webhook
        self.delete_webhook = webhooks.delete_webhook
        self.move_webhook = webhooks.move_webhook
        self.webhook_secret = webhooks.webhook_secret

    def _add_statistics(self, statistics: StatisticPart) -> None:
        self.add_statistics = statistics.add_statistics
        self.roll_up_statistics = statistics.roll_up_statistics
        self.forget_statistics = statistics.forget_statistics
        self.statistics = statistics.statistics
        self.statistic_totals = statistics.statistic_totals

    def _add_schema(self, schema: SchemaPart) -> None:
        self.migrate = schema.migrate
        self.check_schema = schema.check_schema
        self.why_read_only = schema.why_read_only
        self.schema_dump = schema.schema_dump

    def _add_workers(self, workers: WorkerPart) -> None:
        self.register = workers.register
        self.beat = workers.beat
        self.retire = workers.retire
        self.report = workers.report
        self.wants_quiet = workers.wants_quiet
        self.cancel_requests = workers.cancel_requests
        self.workers = workers.workers
        self.bury_silent = workers.bury_silent
        self.bury_gone = workers.bury_gone
        self.dead_workers = workers.dead_workers

    def _add_commands(self, commands: CommandPart, intake: IntakePart) -> None:
        bulk = BulkPart(self._database, commands)
        self._add_alerts(AlertRulePart(self._database), intake)
        self.enqueue = EnqueueingPart(self._database, intake).enqueue
        self.requeue = commands.requeue
        self.cancel = commands.cancel
        self.run_now = commands.run_now
        self.reschedule = commands.reschedule
        self.mark = commands.mark
        self.quiet = commands.quiet
        self.delete = commands.delete
        self.purge = commands.purge
        self.start_bulk = bulk.start_bulk
        self.take_bulk = bulk.take_bulk
        self.advance_bulk = bulk.advance_bulk
        self.stop_bulk = bulk.stop_bulk
        self.bulk = bulk.bulk
        self.bulks = bulk.bulks

    def _add_alerts(self, rules: AlertRulePart, intake: IntakePart) -> None:
        alerts = AlertPart(self._database, intake, rules)
        self.alert_rules = rules.alert_rules
        self.save_alert_rule = rules.save_alert_rule
        self.pause_alert_rule = rules.pause_alert_rule
        self.delete_alert_rule = rules.delete_alert_rule
        self.alert_channels = rules.alert_channels
        self.save_alert_channel = rules.save_alert_channel
        self.delete_alert_channel = rules.delete_alert_channel
        self.declare_alerts = rules.declare_alerts
        self.budget_limits = rules.budget_limits
        self.alert_book = alerts.alert_book
        self.write_alerts = alerts.write_alerts
        self.recent_failures = alerts.recent_failures
        self.missed_fires = alerts.missed_fires
        self.alerts = alerts.alerts
        self.notices = alerts.notices
        self.notice = alerts.notice
        self.add_notice = alerts.add_notice
        self.note_delivery = alerts.note_delivery

    def _add_time(self, database: Database, firing: FiringPart) -> None:
        leaders = LeaderPart(database)
        schedules = SchedulePart(database)

        self.declare_schedules = schedules.declare_schedules
        self.save_schedule = schedules.save_schedule
        self.pause_schedule = schedules.pause_schedule
        self.resume_schedule = schedules.resume_schedule
        self.delete_schedule = schedules.delete_schedule
        self.schedule = schedules.schedule
        self.schedules = schedules.schedules
        self.due_schedules = firing.due_schedules
        self.fires = schedules.fires
        self.last_fires = schedules.last_fires
        self.fire = firing.fire

        self.once_per = ThrottlePart(database).once_per

        self.lead = leaders.lead
        self.step_down = leaders.step_down
        self.leaders = leaders.leaders

        self.back_up = BackupPart(database).back_up

    def _add_flows(
        self, database: Database, events: EventPart, families: FamilyPart, steps: StepPart, lines: LinePart
    ) -> None:
        progress = ProgressPart(database)

        self.steps = steps.steps
        self.save_steps = steps.save_steps
        self.spawn = families.spawn
        self.planned = families.planned
        self.family = families.family
        self.families = families.families
        self.children = families.children
        self.fates = families.fates
        self.emit = events.emit
        self.emitted = events.emitted
        self.asking = events.asking
        self.save_progress = progress.save_progress
        self.progress = progress.progress
        self.save_lines = lines.save_lines
        self.lines = lines.lines

    def _add_gates(self, database: Database, upkeep: UpkeepPart) -> None:
        breakers = BreakerPart(database, upkeep)
        gates = GatePart(database, upkeep, breakers)
        pauses = PausePart(database, upkeep)
        sums = SpendSums(database)

        self.pass_gates = gates.pass_gates
        self.release_gates = gates.release_gates
        self.loans = gates.loans
        self.return_loans = gates.return_loans
        self.recall_loans = gates.recall_loans
        self.spend = gates.spend
        self.spent = gates.spent
        self.budgets = gates.budgets
        self.report_breakers = breakers.report_breakers
        self.breakers = breakers.breakers
        self.set_breaker = breakers.set_breaker
        self.pause = pauses.pause
        self.resume = pauses.resume
        self.pauses = pauses.pauses
        self.sum_spends = sums.sum_spends
        self.forget_gates = GateUpkeepPart(database, pauses, sums).forget_gates

    async def open(self) -> None:
        """Open the file, creating it if there is none. Raises StoreRefused with what to do where it cannot be used."""
        await self._database.open()

    async def close(self) -> None:
        """Finish pending operations, then close the file and end the threads."""
        await self._database.close()

    def abandon(self) -> None:
        """The same once the event loop is closed; blocks meanwhile."""
        self._database.abandon()

    def sibling(self) -> SqliteStore:
        """Another store on the same file with connections of its own, not yet open."""
        _, driver, prefix, clock = self._settings
        path = self._database.path  # once open the real one: the folder that the given one starts from may be another
        return SqliteStore(path, driver=driver, prefix=prefix, clock=clock)
