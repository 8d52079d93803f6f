"""The names of spans, attributes and instruments. docs/reference/opentelemetry.md lists them; a test compares."""

from __future__ import annotations

from typing import Final

SCOPE: Final = "perdure"

ENQUEUE: Final = "enqueue"
ATTEMPT: Final = "attempt"
WAIT: Final = "wait"

JOB_ID: Final = "perdure.job.id"
JOB_KIND: Final = "perdure.job.kind"
JOB_QUEUE: Final = "perdure.job.queue"
JOB_REF: Final = "perdure.job.ref"
JOB_PARENT: Final = "perdure.job.parent"
JOB_ATTEMPT: Final = "perdure.job.attempt"

ENQUEUE_JOBS: Final = "perdure.enqueue.jobs"
ENQUEUE_INTAKE: Final = "perdure.enqueue.intake"

ATTEMPT_WAITED: Final = "perdure.attempt.waited"
ATTEMPT_OUTCOME: Final = "perdure.attempt.outcome"
ATTEMPT_STATE: Final = "perdure.attempt.state"
ATTEMPT_REASON: Final = "perdure.attempt.reason"
ATTEMPT_RETRY_IN: Final = "perdure.attempt.retry_in"

WORKER: Final = "perdure.worker.name"
LOOP: Final = "perdure.loop.name"
SCHEDULE: Final = "perdure.schedule.name"
SCHEDULE_OUTCOME: Final = "perdure.schedule.outcome"
RESCUE_OUTCOME: Final = "perdure.rescue.outcome"

CALL_NAME: Final = "perdure.call.name"
CALL_PENDING: Final = "perdure.call.pending"

WAIT_REASON: Final = "perdure.wait.reason"
WAIT_SECONDS: Final = "perdure.wait.seconds"
WAIT_EVENT: Final = "perdure.wait.event"
WAIT_FAMILY: Final = "perdure.wait.family"
WAIT_PARKED: Final = "perdure.wait.parked"

SYSTEM: Final = "messaging.system"
DESTINATION: Final = "messaging.destination.name"
OPERATION: Final = "messaging.operation.name"
OPERATION_TYPE: Final = "messaging.operation.type"
MESSAGE_ID: Final = "messaging.message.id"
BATCH_COUNT: Final = "messaging.batch.message_count"

ERROR_TYPE: Final = "error.type"
EXCEPTION: Final = "exception"
EXCEPTION_TYPE: Final = "exception.type"
EXCEPTION_MESSAGE: Final = "exception.message"
EXCEPTION_STACKTRACE: Final = "exception.stacktrace"
