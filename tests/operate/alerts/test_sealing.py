"""A sealed text opens with every key that the environment lists, and with no other; nothing tells what it holds."""

from __future__ import annotations

import pytest

from perdure.errors import ArgumentError, SettingsError
from perdure.operate.alerts.sealing import KEY_VARIABLE, new_key, seal, unsealed

TEXT = "slack://s3cret"


def test_keys_can_be_replaced_without_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = new_key(), new_key()
    monkeypatch.setenv(KEY_VARIABLE, old)
    kept = seal("address", TEXT)
    assert (kept.startswith("sealed:"), "s3cret" in kept) == (True, False)
    monkeypatch.setenv(KEY_VARIABLE, f"{new}, {old}")
    again = seal("address", TEXT)
    assert [unsealed("address", each) for each in (kept, again)] == [TEXT, TEXT]
    monkeypatch.setenv(KEY_VARIABLE, new)
    assert unsealed("address", again) == TEXT
    with pytest.raises(SettingsError, match=rf"address was encrypted with another key than {KEY_VARIABLE} holds"):
        unsealed("address", kept)


def test_without_a_key_nothing_is_sealed_or_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, new_key())
    kept = seal("address", TEXT)
    monkeypatch.delenv(KEY_VARIABLE)
    with pytest.raises(ArgumentError, match="address holds a secret") as refused:
        seal("address", TEXT)
    assert "s3cret" not in str(refused.value)
    with pytest.raises(SettingsError, match=f"is stored encrypted, and {KEY_VARIABLE} is not set here"):
        unsealed("address", kept)
    monkeypatch.setenv(KEY_VARIABLE, "no-key")
    with pytest.raises(SettingsError, match="is not a key: it must be 32 bytes") as wrong:
        seal("address", TEXT)
    assert "no-key" not in str(wrong.value)


def test_a_variable_is_read_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert unsealed("address", "smtp://localhost") == "smtp://localhost"
    monkeypatch.setenv("OPS_SLACK", TEXT)
    assert unsealed("address", "env:OPS_SLACK") == TEXT
    monkeypatch.delenv("OPS_SLACK")
    with pytest.raises(SettingsError, match="environment variable OPS_SLACK, which is not set here"):
        unsealed("address", "env:OPS_SLACK")
