"""`perdure token`: created, shown once, listed, revoked."""

from __future__ import annotations

from typing import Any

import pytest
from tests.support.builders.jobs import enqueue
from tests.surfaces.conftest import Arrange, Cli

from perdure.operate.commands.tokens import check_token
from perdure.storage.port import Store
from perdure.surfaces.cli.exits import Exit


def test_a_token_is_shown_once_listed_and_revoked(cli: Cli, arrange: Arrange[Any]) -> None:
    arrange(enqueue)
    assert cli("token", "list").out == "No tokens.\n"
    made = cli("token", "create", "--name", "alice", "--scope", "operate", "--expires", "90d")
    assert made.code == Exit.OK
    secret = made.out.splitlines()[-1]
    assert secret.startswith("pdr_")
    assert len(secret) == 47
    assert "expires" in made.out
    other = cli("token", "create", "--name", "ci", "--scope", "read", "--json").json
    assert (other["token"]["name"], other["token"]["scope"], other["token"]["expires_at"]) == ("ci", "read", None)

    async def known(store: Store) -> list[str | None]:
        found = [await check_token(store, each) for each in (secret, other["secret"], secret + "x")]
        return [each.name if each else None for each in found]

    assert arrange(known) == ["alice", "ci", None]
    listed = cli("token", "list")
    everything = [listed.out, cli("token", "list", "--json").out, cli("audit", "list", "--json").out]
    assert all("alice" in text and secret not in text and other["secret"] not in text for text in everything)
    assert [one["last_used_at"] is None for one in cli("token", "list", "--json").json["tokens"]] == [False, False]
    assert cli("token", "revoke", "alice").code == Exit.OK
    assert cli("token", "revoke", other["token"]["id"], "--json").json["token"]["revoked_at"] is not None
    assert arrange(known) == [None, None, None]
    assert "revoked" in cli("token", "list").out
    actions = [entry["action"] for entry in cli("audit", "list", "--json").json["entries"]]
    assert actions == ["token.revoke", "token.revoke", "token.create", "token.create"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("create", "--name", "taken", "--scope", "read"), Exit.CONFLICT, "there is a token 'taken' already"),
        (("create", "--name", "a", "--scope", "root"), Exit.USAGE, "--scope must be one of read, operate, admin"),
        (("create", "--name", "a", "--scope", "read", "--expires", "soon"), Exit.USAGE, "--expires is not a duration"),
        (("create", "--name", "a", "--scope", "read", "--expires", "0s"), Exit.USAGE, "--expires must be longer"),
        (("create", "--name", "system", "--scope", "read"), Exit.USAGE, "--name must not be a name"),
        (("create", "--name", "schedule x", "--scope", "read"), Exit.USAGE, "--name must not be a name"),
        (("create", "--name", "\x1b[31m", "--scope", "read"), Exit.USAGE, "--name must be 1 to 100 printable"),
        (("revoke", "nobody"), Exit.NOT_FOUND, "there is no token 'nobody'; there are 'taken'"),
    ],
)
def test_what_makes_no_sense_is_refused(
    cli: Cli, arrange: Arrange[Any], words: tuple[str, ...], code: Exit, said: str
) -> None:
    arrange(enqueue)
    cli("token", "create", "--name", "taken", "--scope", "read")
    answer = cli("token", *words)
    assert (answer.code, answer.out) == (code, "")
    assert said in " ".join(answer.err.split())
