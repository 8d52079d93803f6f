"""Run one system: `python -m perdure_systems notifications`."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from perdure import PerdureError, SettingsError

NAMES: Final = ("notifications", "certificates", "flags", "pulse", "authorities", "audits")


def run(
    name: Annotated[str, typer.Argument(help=f"Which system: {', '.join(NAMES)}.")],
    *,
    url: Annotated[str | None, typer.Option(help="The database; PERDURE_URL, or sqlite:///perdure.db.")] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int | None, typer.Option(help="The port to listen on; 0 takes a free one.")] = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name under which it is reached, as by a proxy.")
    ] = None,
    http: Annotated[bool, typer.Option(help="Serve the API and the page.")] = True,
    jobs: Annotated[bool, typer.Option(help="Run the jobs.")] = True,
    env_file: Annotated[Path | None, typer.Option(help="A file of NAME=value lines, as .env.example.")] = None,
) -> None:
    """Run a system's workers, API and page in one process, until Ctrl-C."""
    try:
        for variable, value in read_env_file(env_file).items():
            os.environ.setdefault(variable, value)
        if url is not None:
            os.environ["PERDURE_URL"] = url
        asyncio.run(_run(name, host, port, allow_host or [], http, jobs))
    except PerdureError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201 - a command line prints
        raise typer.Exit(1) from None


async def _run(name: str, host: str, port: int | None, hosts: list[str], http: bool, jobs: bool) -> None:
    from perdure_systems.kit.service import run_system  # noqa: PLC0415 - apps read the environment when imported

    if name not in NAMES:
        raise SettingsError("name", f"must be one of {', '.join(NAMES)}, got {name!r}")
    system = importlib.import_module(f"perdure_systems.{name}.system").SYSTEM
    await run_system(
        system,
        host=host,
        port=port,
        hosts=hosts,
        serve_http=http,
        run_jobs=jobs,
        when_open=lambda address: print(f"✿ {system.title} at {address}", flush=True),  # noqa: T201 - as above
    )


def read_env_file(path: Path | None) -> dict[str, str]:
    """The variables of a file: NAME=value lines, quotes optional, # begins a comment line."""
    if path is None:
        return {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise SettingsError("env-file", f"{str(path)!r} cannot be read: {error.strerror}") from None
    variables: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        variable, equals, value = text.partition("=")
        if not equals or not variable.strip().replace("_", "").isalnum():
            raise SettingsError("env-file", f"line {number} of {str(path)!r} must be NAME=value, got {text!r}")
        variables[variable.strip()] = value.strip().strip("\"'")
    return variables


def main() -> None:
    """The command line."""
    typer.run(run)


if __name__ == "__main__":
    main()
