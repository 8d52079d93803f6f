"""Passwords are kept out of what is shown, and other words are left whole."""

from __future__ import annotations

import pytest

from perdure.policy.secrets.passwords import strike, without_password


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ada:hunter2@host:5432/db", "postgresql://ada:***@host:5432/db"),
        ("postgresql://ada:a@data/a?x=1", "postgresql://ada:***@data/a?x=1"),
        ("postgresql://ada:p@ss@host/db", "postgresql://ada:***@host/db"),
        ("postgresql://ada:pa/ss@host/db", "postgresql://ada:***@host/db"),
        ("postgresql://:secret@host/db", "postgresql://:***@host/db"),
        ("postgresql://host/db?user=ada&password=hunter2&x=1", "postgresql://host/db?user=ada&password=***&x=1"),
        ("postgresql://ada@host:5432/db", "postgresql://ada@host:5432/db"),
        ("sqlite:////var/a:b@c/jobs.db", "sqlite:////var/a:b@c/jobs.db"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert without_password(url) == shown


def test_a_short_password_strikes_no_letters_elsewhere() -> None:
    said = 'connection to server at "data" failed: password authentication failed for user "ada"'
    assert strike(said, "a") == said
    assert strike(said, "ada") == said


def test_a_long_password_is_struck_at_every_place() -> None:
    assert strike("cannot connect with hunter2-and-more!", "hunter2-and-more") == "cannot connect with ***!"


def test_a_piece_of_a_url_that_is_quoted_is_struck_whole() -> None:
    assert strike('invalid token: "a%zz"', "a%zz", quoted=True) == 'invalid token: "***"'
