"""The files of audits: one folder each, with the screenshots and the report."""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path

from perdure import NotFoundError
from perdure_systems.audits import settings


def save(audit_id: str, name: str, content: bytes) -> None:
    """Write a file of an audit: all of it or nothing, also when two attempts write at the same time."""
    folder = _folder(audit_id)
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".{name}.{uuid.uuid4().hex}"
    partial.write_bytes(content)
    partial.replace(folder / name)


def load(audit_id: str, name: str) -> bytes:
    """Read a file of an audit; `NotFoundError` if it is gone."""
    try:
        return (_folder(audit_id) / name).read_bytes()
    except FileNotFoundError:
        raise NotFoundError(f"the file {name} of audit {audit_id} is not there any more") from None


def remove(audit_id: str) -> None:
    """Delete all files of an audit."""
    shutil.rmtree(_folder(audit_id), ignore_errors=True)


def free_mb() -> int:
    """How much room there is; creates the folder, and raises OSError if it cannot be written."""
    root = settings.storage_folder()
    root.mkdir(parents=True, exist_ok=True)
    if not os.access(root, os.W_OK):
        raise PermissionError(f"{root} cannot be written")
    return shutil.disk_usage(root).free // 1_000_000


def _folder(audit_id: str) -> Path:
    return settings.storage_folder() / str(uuid.UUID(audit_id))  # nothing but an id leads into the folder
