"""Words and options in the wrong place: the hint says where they belong."""

from __future__ import annotations

import pytest
from tests.surfaces.conftest import run_cli

from perdure.surfaces.cli.exits import Exit


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("why", "01"), "Did you mean: perdure jobs why"),
        (("requeue", "--all"), "Did you mean: perdure jobs requeue or perdure dead requeue"),
        (("list",), "Did you mean: perdure jobs list? Other groups with list: alerts, audit, "),
        (("queues",), "Did you mean: perdure stats"),
        (("retry", "01"), "Did you mean: perdure dead requeue"),
        (("--url", "sqlite:///jobs.db", "stats"), "--url goes after the command, as in: perdure stats --url …"),
        (
            ("--url", "sqlite:///jobs.db", "jobs", "list"),
            "--url goes after the command, as in: perdure jobs list --url …",
        ),
        (("--url", "sqlite:///jobs.db"), "--url goes after the command, as in: perdure jobs "),
        (("--json", "doctor"), None),
        (
            ("--concurrency=3", "worker"),
            "--concurrency goes after the command, as in: perdure worker --concurrency …",
        ),
        (("--nonsense", "stats"), "Try: perdure --help"),
        (("nope",), "Try: perdure --help"),
        (("wroker",), "Try: perdure --help"),
        (("jobs", "lst"), "Try: perdure jobs --help"),
    ],
)
def test_the_hint_says_where_it_belongs(words: tuple[str, ...], hint: str | None) -> None:
    answer = run_cli(*words)
    assert (answer.code, answer.out) == (Exit.USAGE, "")
    if hint is not None:  # with --json the error is a document, without hints
        assert f"\n{hint}" in answer.err
        assert answer.err.count("Did you mean") <= 1


def test_every_command_that_is_recommended_exists() -> None:
    for word in ("queues", "status", "kinds", "retry", "run", "start"):
        *_, hint = run_cli(word).err.splitlines()
        command = hint.removeprefix("Did you mean: perdure ").split()
        assert run_cli(*command, "--help").code == Exit.OK, word


def test_no_flag_of_perdure_itself_is_shown_with_a_type() -> None:
    shown = run_cli("--help").out
    assert "--install-completion" in shown
    assert "<bool>" not in shown
