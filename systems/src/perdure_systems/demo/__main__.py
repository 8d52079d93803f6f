"""`make demo`: all systems on one database, flaky stand-ins, the desk at a printed address, and a guided tour."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.markup import escape

from perdure import PerdureError
from perdure_systems.demo.processes import Part, ProcessFailed, pages_part, read_addresses, worker_part
from perdure_systems.demo.screen import Screen

_FOLDER: Final = Path(".demo")
_PORT: Final = 8100


def run(
    *,
    auto: Annotated[bool, typer.Option(help="Go through the tour without waiting for Enter, and end.")] = False,
    url: Annotated[str | None, typer.Option(help="The database; an SQLite file in the folder by default.")] = None,
    postgres: Annotated[bool, typer.Option(help="Start a PostgreSQL server in the folder and use it.")] = False,
    workers: Annotated[int, typer.Option(help="How many worker processes.", min=1, max=8)] = 1,
    folder: Annotated[Path, typer.Option(help="Where the demo keeps its data between two starts.")] = _FOLDER,
    port: Annotated[int, typer.Option(help="The first of seven ports.", min=1, max=65_000)] = _PORT,
    pause: Annotated[float, typer.Option(help="Seconds between two steps with --auto.", min=0)] = 1.5,
) -> None:
    """Show perdure at work: a guided tour through six systems."""
    screen = Screen(auto=auto or not sys.stdin.isatty(), pause=pause)
    try:
        code = asyncio.run(_run(screen, _Stage(folder.absolute()), url, postgres, workers, port))
    except OSError as error:
        screen.console.print(f"[red]error:[/red] {escape(str(error))}: choose another folder with --folder")
        raise typer.Exit(1) from None
    except (PerdureError, ProcessFailed) as error:
        screen.console.print(f"[red]error:[/red] {escape(str(error))}")
        raise typer.Exit(1) from None
    raise typer.Exit(code)


class _Stage:
    """The folder of the demo. `is_first`: no demo has run in it yet."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.logs = folder / "logs"
        self.is_first = not folder.exists()
        self.logs.mkdir(parents=True, exist_ok=True)


async def _run(screen: Screen, stage: _Stage, url: str | None, postgres: bool, workers: int, port: int) -> int:
    """Start everything, take the tour, and close in order; 0 if every step has shown what it promised."""
    from perdure_systems.demo.outside import World  # noqa: PLC0415 - stand-ins need what the systems need
    from perdure_systems.demo.server import postgres_server  # noqa: PLC0415 - as above
    from perdure_systems.demo.tour import Tour  # noqa: PLC0415 - as above

    with suppress(asyncio.CancelledError):
        _cancel_when_interrupted()
        async with AsyncExitStack() as stack:
            if postgres:
                url = stack.enter_context(postgres_server(stage.folder / "postgres"))
            database = url or f"sqlite:///{stage.folder / 'demo.db'}"
            screen.title("perdure demo", f"six systems on one database: {_shown(database)}")
            world = await stack.enter_async_context(World(stage.folder, database))
            crew = [worker_part(number, world.environment, stage.logs) for number in range(1, workers + 1)]
            pages = pages_part(world.environment, stage.logs, port)
            stack.push_async_callback(_close, screen, [*crew, pages])
            screen.say("✿ opening …" if stage.is_first else "✿ opening where the last demo left off …")
            addresses = read_addresses(await pages.start())
            if not addresses["home"].endswith(f":{port}"):
                screen.plain(f"port {port} is in use: the pages took free ports instead")
            for part in crew:
                await part.start()
            screen.look("the desk: what needs a person, and every job of all systems", f"{addresses['desk']}/")
            screen.look("the pages of the six systems", addresses["home"])
            screen.say(f"logs in {stage.logs}")
            tour = Tour(screen=screen, world=world, addresses=addresses, crew=crew, is_first=stage.is_first)
            return await tour.take()
    return 0


def _cancel_when_interrupted() -> None:
    """Let Ctrl-C or SIGTERM end this task at any moment."""
    task = asyncio.current_task()
    if task is not None:
        _on_interrupt(task.cancel)


def _on_interrupt(act: Callable[[], object]) -> None:
    for one in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(one, act)


async def _close(screen: Screen, parts: list[Part]) -> None:
    """Stop workers first, so that they hand back what they run, then the pages. A second Ctrl-C changes nothing."""
    _on_interrupt(lambda: None)
    screen.console.print()
    screen.say("❀ closing: workers finish or hand back what they run …")
    codes = await asyncio.gather(*(part.stop() for part in parts[:-1]))
    await parts[-1].stop()
    screen.say(f"❀ closed ({'all workers in good order' if not any(codes) else f'exit codes {codes}'})")


def _shown(url: str) -> str:
    """The URL without a password."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2]}"


def main() -> None:
    """The command line."""
    typer.run(run)


if __name__ == "__main__":
    main()
