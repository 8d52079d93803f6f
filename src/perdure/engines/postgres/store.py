"""The PostgreSQL engine as one object: every protocol of the port, each answered by its own part."""

from __future__ import annotations

from perdure.clock import Clock
from perdure.engines.postgres.claims.acknowledgements import AcknowledgementPart
from perdure.engines.postgres.claims.checkpoints import Checkpoints
from perdure.engines.postgres.claims.claims import ClaimPart
from perdure.engines.postgres.claims.effects import EffectPart
from perdure.engines.postgres.claims.returned_jobs import ReturnedJobs
from perdure.engines.postgres.database.connections import Server
from perdure.engines.postgres.database.naming import Naming
from perdure.engines.postgres.database.pools import pools_of
from perdure.engines.postgres.database.schema import SchemaPart
from perdure.engines.postgres.fleet.ends import Ends
from perdure.engines.postgres.fleet.leaders import LeaderPart
from perdure.engines.postgres.fleet.signals import SignalPart
from perdure.engines.postgres.fleet.upkeep import UpkeepPart
from perdure.engines.postgres.fleet.workers import WorkerPart
from perdure.engines.postgres.flows.events import EventPart
from perdure.engines.postgres.flows.families import FamilyPart
from perdure.engines.postgres.flows.linking import Linking
from perdure.engines.postgres.flows.log_lines import LinePart
from perdure.engines.postgres.flows.progress import ProgressPart
from perdure.engines.postgres.flows.settling import Settling
from perdure.engines.postgres.flows.steps import StepPart
from perdure.engines.postgres.flows.throttle import ThrottlePart
from perdure.engines.postgres.flows.waking import Waker
from perdure.engines.postgres.gates.breakers import BreakerPart
from perdure.engines.postgres.gates.gates import GatePart
from perdure.engines.postgres.gates.locks import GateLocks
from perdure.engines.postgres.gates.pauses import PausePart
from perdure.engines.postgres.gates.spend_sums import SpendSums
from perdure.engines.postgres.gates.upkeep import GateUpkeepPart
from perdure.engines.postgres.intake.borrowing import BorrowingPart
from perdure.engines.postgres.intake.intake import IntakePart
from perdure.engines.postgres.operate.alerts.alert_rules import AlertRulePart
from perdure.engines.postgres.operate.alerts.alerts import AlertPart
from perdure.engines.postgres.operate.backup import BackupPart
from perdure.engines.postgres.operate.commands.bulk import BulkPart
from perdure.engines.postgres.operate.commands.commands import CommandPart
from perdure.engines.postgres.operate.commands.enqueueing import EnqueueingPart
from perdure.engines.postgres.operate.commands.tokens import TokenPart
from perdure.engines.postgres.operate.commands.webhooks import WebhookPart
from perdure.engines.postgres.operate.diagnosis import DiagnosisPart
from perdure.engines.postgres.operate.event_log import EventLogPart
from perdure.engines.postgres.operate.pooler_diagnosis import PoolerDiagnosis
from perdure.engines.postgres.operate.views.counting import CountingPart
from perdure.engines.postgres.operate.views.failure_groups import FailureGroupPart
from perdure.engines.postgres.operate.views.insight import InsightPart
from perdure.engines.postgres.operate.views.kinds import KindPart
from perdure.engines.postgres.operate.views.statistics import StatisticPart
from perdure.engines.postgres.operate.views.trail import TrailPart
from perdure.engines.postgres.schedules.firing import FiringPart
from perdure.engines.postgres.schedules.schedules import SchedulePart


class PostgresStore:
    """A perdure in a schema of a PostgreSQL database.

    `listen_url` leads to the same database without a pooler, for LISTEN. `clock` replaces the database's own: for
    tests.
    """

    def __init__(
        self,
        url: str,
        *,
        schema: str = "perdure",
        prefix: str = "",
        listen_url: str | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._url = url
        self._listen_url = listen_url
        self._clock = clock
        self.naming = naming = Naming(schema, prefix)
        server = Server(url)
        self._pools = pools = pools_of(server)
        self._desk = pools.desk
        listening = Server(listen_url, field="listen_url") if listen_url else server
        self._ends = ends = Ends(naming, listening, pools.bell)
        self._signals = signals = SignalPart(naming, server, pools.bell, ends.heard, listening)
        self._returns = returns = ReturnedJobs()
        self._intake = intake = IntakePart(naming, pools.intake, clock, signals)
        kinds = KindPart(naming, pools.desk, clock)
        families = FamilyPart(naming, pools.flows, clock, intake, pools.desk)
        settling = Settling(naming, clock, Linking(naming, families))
        upkeep = UpkeepPart(naming, pools.upkeep, clock, settling=settling, returns=returns, kinds=kinds)
        events = EventPart(naming, pools.flows, clock, settling, returns)
        acknowledgement = AcknowledgementPart(
            naming=naming,
            pool=pools.acknowledgements,
            clock=clock,
            settling=settling,
            events=events,
            returns=returns,
            kinds=kinds,
        )
        self._claims = claims = ClaimPart(naming, pools.claims, clock, acknowledgement, returns)
        commands = CommandPart(naming, pools.desk, clock, settling, returns)
        pooler = PoolerDiagnosis(server, signals, listening if listen_url else None)
        lines = LinePart(naming, pools.flows)
        steps = StepPart(naming, pools.flows, clock)

        self.insert = intake.insert
        self.through = BorrowingPart(naming, clock).through

        self.claim = claims.claim
        self.fronts = claims.fronts
        self.leases = claims.leases
        self.claims_held = claims.claims_held
        self.acknowledge = acknowledgement.acknowledge
        self.checkpoint = Checkpoints(naming, pools.acknowledgements).checkpoint
        self.begin_effects = EffectPart(server, acknowledgement, steps, lines).begin_effects

        self._add_workers(WorkerPart(naming, pools.upkeep, clock))

        self.promote = upkeep.promote
        self.overdue = upkeep.overdue
        self.hasten = upkeep.hasten
        self.settle_joined = upkeep.settle_joined
        self.orphans = upkeep.orphans
        self.last_return = upkeep.last_return
        self.prune = upkeep.prune

        self._add_insight(kinds)
        self._add_tokens(TokenPart(naming, pools.desk, clock))
        self._add_commands(commands, BulkPart(naming, pools.desk, clock, commands), intake)
        self._add_signals(signals, ends)
        self._add_diagnosis(DiagnosisPart(naming, pools.desk, pooler, clock))
        self._schema = SchemaPart(naming, pools.desk)
        self._add_schema(self._schema)
        self._add_time(FiringPart(naming, pools.upkeep, clock, intake, commands))
        self._add_flows(events, families, steps, lines)
        self._add_gates()

    def _add_insight(self, kinds: KindPart) -> None:
        naming, desk, clock = self.naming, self._pools.desk, self._clock
        insight, trail = InsightPart(naming, desk, clock), TrailPart(naming, desk, clock)
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
        self.count = CountingPart(naming, desk).count
        groups = FailureGroupPart(naming, desk)
        self.failure_groups = groups.failure_groups
        self.failure_hours = groups.failure_hours
        self.fingerprint_dead = groups.fingerprint_dead
        self.audit = trail.audit
        self.record = trail.record
        self._add_statistics(StatisticPart(naming, self._pools.upkeep, desk, clock))
        self._add_event_log(EventLogPart(naming, desk, clock), WebhookPart(naming, desk, clock))

    def _add_signals(self, signals: SignalPart, ends: Ends) -> None:
        self.ring = signals.ring
        self.wakeups = signals.wakeups
        self.await_ends = ends.await_ends
        self.ring_ended = ends.ring_ended
        self.ends = ends.ends

    def _add_diagnosis(self, diagnosis: DiagnosisPart) -> None:
        self.diagnose = diagnosis.diagnose
        self.waiting = diagnosis.waiting
        self.paused = diagnosis.paused
        self.parked_ahead = diagnosis.parked_ahead
        self.redate_parked = diagnosis.redate_parked

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

    def _add_commands(self, commands: CommandPart, bulk: BulkPart, intake: IntakePart) -> None:
        self._add_alerts(AlertRulePart(self.naming, self._pools.desk, self._clock), intake)
        self.enqueue = EnqueueingPart(self.naming, self._pools.desk, self._clock, intake).enqueue
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
        alerts = AlertPart(self.naming, self._pools.desk, self._clock, intake, rules)
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

    def _add_time(self, firing: FiringPart) -> None:
        leaders = LeaderPart(self.naming, self._pools.upkeep, self._clock)
        schedules = SchedulePart(self.naming, self._pools.desk, self._clock)

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

        self.once_per = ThrottlePart(self.naming, self._pools.flows, self._clock).once_per

        self.lead = leaders.lead
        self.step_down = leaders.step_down
        self.leaders = leaders.leaders

        self.back_up = BackupPart().back_up

    def _add_flows(self, events: EventPart, families: FamilyPart, steps: StepPart, lines: LinePart) -> None:
        progress = ProgressPart(self.naming, self._pools.flows)

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

    def _add_gates(self) -> None:
        naming, pool, desk, clock = self.naming, self._pools.gates, self._pools.desk, self._clock
        locks = GateLocks(naming, pool, clock)
        waking = Waker(naming, pool, clock, self._signals.ring, self._returns)
        breakers = BreakerPart(naming, pool, clock, locks, waking)
        gates = GatePart(naming, pool, clock, locks, breakers, waking)
        pauses = PausePart(naming, desk, clock, waking)
        sums = SpendSums(naming, desk, clock)

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
        self.forget_gates = GateUpkeepPart(naming, desk, clock, pauses, sums).forget_gates

    async def open(self) -> None:
        """Connect once, to learn early whether that works, and what stands between us and the server."""
        for pool in self._pools:
            pool.open()
        await self._desk.rows("SELECT 1")

    async def close(self) -> None:
        """Finish current work and release every connection."""
        await self._signals.close()
        await self._ends.close()
        for pool in self._pools:
            await pool.close()

    def abandon(self) -> None:
        """Release every connection once the event loop is closed."""
        for pool in self._pools:
            pool.abandon()

    def sibling(self) -> PostgresStore:
        """Another store on the same database with connections of its own, not yet open."""
        naming, listen_url = self.naming, self._listen_url
        return PostgresStore(
            self._url, schema=naming.schema, prefix=naming.prefix, listen_url=listen_url, clock=self._clock
        )
