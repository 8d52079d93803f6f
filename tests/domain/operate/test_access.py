"""Scopes and tokens."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.support.builders.views import NOON

from perdure.domain.operate.access import Scope, TokenView

INSTANT = timedelta(microseconds=1)


def test_each_scope_includes_the_ones_before_it() -> None:
    order = (Scope.READ, Scope.OPERATE, Scope.ADMIN)
    for place, scope in enumerate(order):
        assert [scope.allows(needed) for needed in order] == [place >= needed for needed in range(3)]
    assert sorted(order) == list(order)  # not by their words
    assert max(Scope.READ, Scope.ADMIN) is Scope.ADMIN
    assert Scope.ADMIN.capped(Scope.READ) is Scope.READ
    assert Scope.READ.capped(Scope.ADMIN) is Scope.READ
    assert Scope.READ < "operate" <= Scope.OPERATE
    with pytest.raises(ValueError, match="root"):
        assert Scope.READ < "root"


def test_a_token_is_valid_until_it_expires_or_is_revoked() -> None:
    def token(**changes: object) -> TokenView:
        return TokenView(id="t", name="ci", scope=Scope.READ, created_at=NOON, created_by="ada", **changes)  # type: ignore[arg-type]

    assert token().is_live(NOON)
    assert token(expires_at=NOON + INSTANT).is_live(NOON)
    assert not token(expires_at=NOON).is_live(NOON)
    assert not token(revoked_at=NOON - INSTANT).is_live(NOON)
