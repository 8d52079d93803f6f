"""Every tool: its name and title, the scope that it needs, and its effects."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from perdure.domain.operate.access import Scope


class ToolSpec(Struct, frozen=True, kw_only=True):
    """One tool. `destructive`: it may end work or have effects that no other call can undo.

    `idempotent`: calling it twice has the same effect as calling it once.
    """

    name: str
    title: str
    scope: Scope = Scope.READ
    destructive: bool = False
    idempotent: bool = True

    @property
    def is_command(self) -> bool:
        """Whether it changes something."""
        return self.scope is not Scope.READ


def _command(name: str, title: str, *, destructive: bool = False, idempotent: bool = False) -> ToolSpec:
    return ToolSpec(name=name, title=title, scope=Scope.OPERATE, destructive=destructive, idempotent=idempotent)


TOOLS: Final = (
    ToolSpec(name="overview", title="How is it going"),
    ToolSpec(name="find_jobs", title="Find jobs"),
    ToolSpec(name="explain_job", title="Explain a job"),
    ToolSpec(name="why_not_running", title="Why a job is not running"),
    ToolSpec(name="failure_groups", title="Groups of failures"),
    ToolSpec(name="explain_failure_group", title="Explain a group of failures"),
    ToolSpec(name="compare_spans", title="Compare two spans of time"),
    ToolSpec(name="preview_retries", title="Preview retries"),
    ToolSpec(name="schedules", title="Schedules"),
    ToolSpec(name="gates", title="Pauses, breakers and budgets"),
    ToolSpec(name="workers", title="Workers"),
    ToolSpec(name="approvals", title="Questions that wait for an answer"),
    ToolSpec(name="audit", title="Audit trail"),
    _command("requeue", "Requeue jobs", destructive=True),
    _command("cancel", "Cancel jobs", destructive=True, idempotent=True),
    _command("run_now", "Run jobs now"),
    _command("pause", "Pause a queue or kind"),
    _command("resume", "Resume a queue or kind", idempotent=True),
    _command("trigger_schedule", "Trigger a schedule"),
    _command("answer_approval", "Answer a question of a job", destructive=True),
)
"""All tools; commands are offered only where they are switched on."""

SPECS: Final = {spec.name: spec for spec in TOOLS}
