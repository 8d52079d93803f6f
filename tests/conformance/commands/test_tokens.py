"""TokenStore: tokens and sessions by the digests of their secrets, on the database's clock."""

from __future__ import annotations

from datetime import timedelta

from tests.support.builders.jobs import HOSTILE, HOUR, INSTANT, MINUTE, SECOND

from perdure.clock import ManualClock
from perdure.domain.operate.access import Scope
from perdure.domain.operate.audit import By
from perdure.storage.operate.audit import AuditFilter
from perdure.storage.operate.tokens import NewToken
from perdure.storage.port import Store


def new(number: int, name: str = "", *, clock: ManualClock | None = None, lives: timedelta = HOUR) -> NewToken:
    return NewToken(
        id=f"id{number}",
        name=name or f"name {number}",
        scope=Scope.OPERATE,
        digest=f"{number:064x}",
        expires_at=None if clock is None else clock.now() + lives,
    )


async def test_a_token_is_found_by_its_digest_alone(store: Store, clock: ManualClock) -> None:
    made = await store.add_token(new(1), By("alice"))
    found = await store.live_token(f"{1:064x}")
    assert found is not None
    assert found.token == made
    assert (made.name, made.scope, made.created_by, made.created_at) == ("name 1", Scope.OPERATE, "alice", clock.now())
    assert await store.live_token(f"{2:064x}") is None
    assert [await store.live_token(digest) for digest in ("", "id1", *(text for text in HOSTILE if "\x00" not in text))]
    assert await store.tokens() == [made]


async def test_a_name_is_free_again_once_its_token_is_revoked(store: Store) -> None:
    assert await store.add_token(new(1, "ci"), By("alice"))
    assert await store.add_token(new(2, "ci"), By("alice")) is None
    assert await store.revoke_token("id1", By("bob"))
    assert not await store.revoke_token("id1", By("bob"))
    assert not await store.revoke_token("unknown", By("bob"))
    assert await store.add_token(new(2, "ci"), By("alice"))
    assert [token.revoked_at is None for token in await store.tokens()] == [False, True]


async def test_a_revoked_or_expired_token_is_not_live_and_neither_are_its_sessions(
    store: Store, clock: ManualClock
) -> None:
    await store.add_token(new(1), By("alice"))
    await store.add_token(new(2, clock=clock), By("alice"))
    await store.open_session("s1", "id1", 2 * HOUR)
    await store.open_session("s2", "id2", 2 * HOUR)
    clock.move(HOUR - INSTANT)
    both = (await store.live_token(f"{2:064x}"), await store.session("s2"))
    assert all(each is not None and each.token.id == "id2" for each in both)
    clock.move(INSTANT)
    assert (await store.live_token(f"{2:064x}"), await store.session("s2")) == (None, None)
    assert await store.session("s1") is not None
    await store.revoke_token("id1", By("bob"))
    assert (await store.live_token(f"{1:064x}"), await store.session("s1")) == (None, None)


async def test_a_session_ends_by_its_time_or_by_hand(store: Store, clock: ManualClock) -> None:
    await store.add_token(new(1), By("alice"))
    for name in ("a", "b"):
        await store.open_session(name, "id1", MINUTE)
    await store.close_session("a")
    await store.close_session("unknown")
    assert await store.session("a") is None
    clock.move(MINUTE - INSTANT)
    assert await store.session("b") is not None
    clock.move(INSTANT)
    assert await store.session("b") is None


async def test_a_use_is_written_at_most_once_a_minute(store: Store, clock: ManualClock) -> None:
    await store.add_token(new(1), By("alice"))
    first = clock.now()
    noted = []
    for _ in range(4):
        found = await store.live_token(f"{1:064x}")
        assert found is not None
        noted.append(found.is_noted)
        await store.note_use("id1")
        clock.move(20 * SECOND)
    assert noted == [False, True, True, False]
    assert [token.last_used_at for token in await store.tokens()] == [first + MINUTE]


async def test_tokens_are_in_the_audit_trail_without_their_digest(store: Store, clock: ManualClock) -> None:
    await store.add_token(new(1, clock=clock), By("alice"))
    await store.revoke_token("id1", By("bob"))
    revoked, created = await store.audit(AuditFilter(), 10)
    assert (revoked.actor, revoked.action, revoked.details) == (
        "bob",
        "token.revoke",
        {"token": "id1", "before": {"name": "name 1"}},
    )
    assert (created.actor, created.action) == ("alice", "token.create")
    assert created.details.get("token") == "id1"
    assert {name: created.details["after"][name] for name in ("name", "scope")} == {
        "name": "name 1",
        "scope": "operate",
    }
    assert f"{1:064x}" not in str((revoked, created))


async def test_a_shared_key_stays_what_it_was_first(store: Store) -> None:
    assert await store.shared_key("forms", "first") == "first"
    assert await store.shared_key("forms", "second") == "first"
    assert await store.shared_key("other", "second") == "second"
