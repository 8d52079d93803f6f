"""`perdure backup`: copy the database while work continues."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final

import typer

from perdure.policy.schedules.backup_plan import backup_name
from perdure.storage.operate.backups import Backup
from perdure.storage.port import Store
from perdure.surfaces.cli import options
from perdure.surfaces.cli.session import with_store
from perdure.surfaces.cli.terminal.asking import some
from perdure.surfaces.cli.terminal.hostile import one_line
from perdure.surfaces.cli.terminal.output import plain, print_json, say
from perdure.surfaces.cli.terminal.times import took

_BYTES_PER_KIB: Final = 1024
_UNITS: Final = ("bytes", "KiB", "MiB", "GiB", "TiB")

Target = Annotated[
    Path,
    typer.Argument(
        metavar="PATH",
        help="A new file, or a folder; in a folder, the name has date and time.",
        show_default=False,
    ),
]


def backup(path: Target, url: options.Url = None, as_json: options.Json = False) -> None:
    """Copy the SQLite database to a new file while work continues.

    The copy is opened and checked. On PostgreSQL, the error names the tools to use.
    """

    async def copy(store: Store) -> Backup:
        target = path / backup_name(await store.now()) if path.is_dir() else path
        return await store.back_up(str(target))

    made = with_store(url, copy)
    if as_json:
        print_json(plain(made))
        return
    jobs, seconds = some(made.jobs, "job"), took(timedelta(seconds=made.seconds))
    say(f"{one_line(made.path)}: {_size(made.bytes)}, {jobs}, copied and checked in {seconds}")


def _size(size: float) -> str:
    for unit in _UNITS[:-1]:
        if size < _BYTES_PER_KIB:
            return f"{size:.0f} {unit}" if unit == _UNITS[0] else f"{size:.1f} {unit}"
        size /= _BYTES_PER_KIB
    return f"{size:.1f} {_UNITS[-1]}"
