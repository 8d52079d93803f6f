"""Errors as stored: named for people, cut to size, without characters that no column takes."""

from __future__ import annotations

from perdure.errors import PayloadError, SettingsError
from perdure.policy.failures import (
    MESSAGE_LIMIT_CHARACTERS,
    bad_arguments,
    failure_of,
    lineage,
    noted,
    storable,
    type_name,
)


class Mute(Exception):  # noqa: N818 - it says nothing
    """An error that cannot be turned into text."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def test_types_have_their_public_names() -> None:
    assert type_name(TimeoutError) == "TimeoutError"
    assert type_name(SettingsError) == "perdure.SettingsError"
    assert lineage(ConnectionResetError)[:3] == ("ConnectionResetError", "ConnectionError", "OSError")


def test_an_error_that_cannot_be_turned_into_text_is_recorded_all_the_same() -> None:
    failure = failure_of(Mute())
    assert failure.error_type.endswith("Mute")
    assert failure.message == "<the error could not be turned into text>"


def test_a_long_message_keeps_its_beginning_and_its_end() -> None:
    message = failure_of(ValueError("begin" + "x" * 100_000 + "end")).message
    assert len(message) <= MESSAGE_LIMIT_CHARACTERS
    assert (message.startswith("begin"), message.endswith("end"), "characters cut" in message) == (True, True, True)


def test_characters_that_no_utf_8_column_takes_are_replaced() -> None:
    assert storable("a\x00b\ud800c", 100) == "ab\\ud800c"


def test_a_secret_in_a_message_is_masked() -> None:
    assert "hunter2-hunter2" not in failure_of(ValueError("login failed: password=hunter2-hunter2")).message


def test_a_problem_of_the_handling_is_noted_beside_the_error() -> None:
    failure = noted(failure_of(KeyError("id")), "the triage failed", RuntimeError("boom"))
    assert (failure.error_type, failure.message) == ("KeyError", "'id' (the triage failed: RuntimeError: boom)")


def test_bad_arguments_name_the_field() -> None:
    failure = bad_arguments(PayloadError("n", "of send is missing")).failure
    assert failure.error_type == "PayloadError"
    assert "n of send is missing" in failure.message
