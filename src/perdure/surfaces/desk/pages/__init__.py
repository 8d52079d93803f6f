"""One file per page: its routes and its queries."""

from typing import Final

from perdure.surfaces.desk.pages import audit, gates, keys, kinds, overview, queues, schedules, workers
from perdure.surfaces.desk.pages.alerts import alerts
from perdure.surfaces.desk.pages.forms import emit, enqueue, pause, tokens
from perdure.surfaces.desk.pages.jobs import approvals, bulk, dead, flows, job, jobs
from perdure.surfaces.desk.pages.webhooks import webhooks
from perdure.surfaces.desk.rooms import Room

ROOMS: Final[tuple[Room, ...]] = (
    overview.room,
    jobs.room,
    job.room,
    enqueue.room,
    dead.room,
    queues.room,
    kinds.room,
    approvals.room,
    flows.room,
    emit.room,
    gates.room,
    pause.room,
    schedules.room,
    workers.room,
    alerts.room,
    webhooks.room,
    bulk.room,
    audit.room,
    tokens.room,
    keys.room,
)
