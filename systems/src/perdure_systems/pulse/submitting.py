"""Hand documents in: the document and its job are stored in one transaction, or neither is."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from perdure_systems.pulse.documents import Document, files_of, read_file
from perdure_systems.pulse.jobs import HANDLERS, app, database, records
from perdure_systems.pulse.records import DocumentRecord, new_document_id
from perdure_systems.pulse.settings import read_settings

TAG: Final = "pulse"
"""What jobs that were handed in are tagged with; their children are not."""


class Submitted(msgspec.Struct, frozen=True):
    """The job that stands for a document, and whether it is a new one."""

    job_id: str
    is_new: bool


async def submit(source: str, handler: str, document: Document) -> Submitted:
    """Store a document and its job. While a job of this source and handler is active, that one is given back."""
    now = await (await app.desk("pulse")).now()
    new = new_document_id()
    async with database.transaction() as tx:
        handle = await HANDLERS[handler].using(tags=[TAG], connection=tx.connection).enqueue(new, source, handler)
        if handle.is_new:
            record = DocumentRecord(
                id=new,
                job_id=handle.id,
                source=source,
                handler=handler,
                title=document.title,
                body=document.body,
                submitted_at=now,
            )
            await records.add_document(tx, record)
    return Submitted(handle.id, handle.is_new)


async def submit_folder(handler: str) -> list[Submitted]:
    """Submit every document of the folder that the settings name."""
    folder = read_settings().documents
    if folder is None:
        return []
    return [await submit(source, handler, read_file(Path(folder), source)) for source in files_of(Path(folder))]
