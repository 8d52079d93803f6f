"""Hand documents in: the document and its job are stored in one transaction, or neither is."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import msgspec
import structlog

from perdure_systems.pulse.documents import Document, UnreadableDocument, files_of, read_file
from perdure_systems.pulse.jobs import HANDLERS, app, database, records
from perdure_systems.pulse.records import DocumentRecord, new_document_id

TAG: Final = "pulse"
"""What jobs that were handed in are tagged with; their children are not."""


log = structlog.get_logger("perdure_systems.pulse")


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


class Scanned(msgspec.Struct, frozen=True):
    """What came of a folder: its jobs, and why some files cannot be used."""

    submitted: list[Submitted]
    refused: list[str]


async def submit_folder(folder: Path, handler: str) -> Scanned:
    """Submit every document of a folder. A file that cannot be used does not hold up the others."""
    scanned = Scanned([], [])
    for source in await asyncio.to_thread(files_of, folder):
        try:
            document = await asyncio.to_thread(read_file, folder, source)
        except (UnreadableDocument, OSError) as error:
            log.warning("document cannot be used", source=source, error=str(error))
            scanned.refused.append(str(error))
        else:
            scanned.submitted.append(await submit(source, handler, document))
    return scanned
