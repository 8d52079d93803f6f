"""The parts of a worker, joined by `wiring`."""

from __future__ import annotations

from msgspec import Struct

from perdure.domain.worker import NewWorker
from perdure.lifecycle.loops.crew import Loops
from perdure.lifecycle.process.watchdog import Watchdog
from perdure.worker.claiming.fetcher import Fetcher
from perdure.worker.claiming.lost_claims import LostClaims
from perdure.worker.claiming.quarantine import Quarantine
from perdure.worker.claiming.slots import Slots
from perdure.worker.claiming.slow_start import SlowStart
from perdure.worker.completion import Completion
from perdure.worker.execution.executor import Executor
from perdure.worker.gates.gatekeeper import Gatekeeper
from perdure.worker.gates.loan_keeper import LoanKeeper
from perdure.worker.gates.loans import Loans
from perdure.worker.gates.pauses import Pauses
from perdure.worker.gates.refusals import Refusals
from perdure.worker.gates.reports import GateReports
from perdure.worker.presence.membership import Membership
from perdure.worker.presence.phase import WorkerPhase
from perdure.worker.presence.requests import OperatorRequests
from perdure.worker.presence.snapshot import WorkerSnapshots
from perdure.worker.recording.acknowledger import Acknowledger
from perdure.worker.recording.freed_keys import FreedKeys
from perdure.worker.recording.statistics import AttemptCounts, StatisticsWriter
from perdure.worker.run_state import RunState
from perdure.worker.stages import ClaimStages
from perdure.worker.surroundings import Surroundings
from perdure.worker.timekeeping import Timekeeping


class AttemptParts(Struct, frozen=True, kw_only=True, eq=False):
    """The parts that carry a claim from its start to its acknowledgement."""

    slots: Slots
    pauses: Pauses
    refusals: Refusals
    loans: Loans
    loan_keeper: LoanKeeper
    reports: GateReports
    acknowledger: Acknowledger
    executor: Executor
    gatekeeper: Gatekeeper
    quarantine: Quarantine
    stages: ClaimStages


class WorkerParts(Struct, frozen=True, kw_only=True, eq=False):
    """All parts of a worker."""

    around: Surroundings
    me: NewWorker
    state: RunState
    attempts: AttemptParts
    fetcher: Fetcher
    slow_start: SlowStart
    freed_keys: FreedKeys
    membership: Membership
    phase: WorkerPhase
    requests: OperatorRequests
    lost_claims: LostClaims
    timekeeping: Timekeeping
    counts: AttemptCounts | None
    statistics: StatisticsWriter | None
    loops: Loops
    snapshots: WorkerSnapshots
    watchdog: Watchdog
    completion: Completion
