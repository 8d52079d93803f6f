"""The command line under test, and a database to point it at."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, TypeVar

import pytest
from typer import testing
from typer.main import get_command

from perdure.app.connect import store_for
from perdure.storage.port import Store
from perdure.surfaces.cli.commands import command_line

T = TypeVar("T")
Arrange = Callable[[Callable[[Store], Awaitable[T]]], T]


class Answer:
    """What a command line did: its exit code, and what it wrote."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err

    @property
    def json(self) -> Any:
        """The one JSON document on standard output."""
        return json.loads(self.out)

    @property
    def error(self) -> Any:
        """The one JSON document on standard error."""
        return json.loads(self.err)


Cli = Callable[..., Answer]
# Typer would build the tree of commands anew for each command line, which takes longer than most of them do.
testing._get_command = cache(get_command)  # type: ignore[attr-defined]  # nobody may call it, they say


def run_cli(*words: str, env: dict[str, str | None] | None = None, typed: str | None = None) -> Answer:
    """Run a command line inside this process."""
    settings = {"COLUMNS": "80", "PERDURE_URL": None, "NO_COLOR": None, "FORCE_COLOR": None} | (env or {})
    result = testing.CliRunner().invoke(
        command_line(words), list(words), env=settings, input=typed, catch_exceptions=False
    )
    return Answer(result.exit_code, result.stdout, result.stderr)


@pytest.fixture
def cli(engine_url: str) -> Cli:
    """Run a command on the test's database."""

    def run(*words: str, **more: Any) -> Answer:
        return run_cli(*words, env={"PERDURE_URL": engine_url}, **more)

    return run


@pytest.fixture
def arrange(engine_url: str) -> Arrange[Any]:
    """Do something with the test's database, which is migrated first."""

    def run(work: Callable[[Store], Awaitable[T]]) -> T:
        async def session() -> T:
            store = store_for(engine_url)
            await store.open()
            try:
                await store.migrate()
                return await work(store)
            finally:
                await store.close()

        return asyncio.run(session())

    return run
