"""What the engine itself has written to the audit trail."""

from __future__ import annotations

from perdure.storage.operate.audit import AuditFilter
from perdure.storage.port import Store


async def cancellations_by_system(store: Store) -> list[str]:
    """The jobs whose end as cancelled was noted as done by `system`, by id."""
    entries = await store.audit(AuditFilter(actor="system", action="job_cancel"), 100)
    return sorted(str(entry.job_id) for entry in entries)
