"""All that is known of a job that has failed, for one line of the log."""

from __future__ import annotations

from typing import Any, Final

_JOB: Final = (
    "id", "kind", "reason", "last_error", "failures", "crashes", "max_attempts", "created_at", "finished_at",
)  # fmt: skip
_ATTEMPT: Final = ("number", "started_at", "worker", "error_type", "message")


def context_of(detail: dict[str, Any]) -> dict[str, Any]:
    """The job, its arguments, how far its steps are, each attempt, the last traceback and what it has logged."""
    job, attempts = detail["job"], detail["attempts"]
    return {
        **{name: job[name] for name in _JOB},
        "arguments": job["args"],
        "steps": {step["key"]: {"state": step["state"], "note": step["note"]} for step in detail["steps"]},
        "attempts": [{name: attempt[name] for name in _ATTEMPT} for attempt in attempts],
        "traceback": attempts[-1]["traceback"] if attempts else None,
        "lines": [line["text"] for line in detail["lines"]],
    }
