"""Schedules in plain words."""

from __future__ import annotations

import pytest

from perdure.errors import ArgumentError
from perdure.policy.schedules.words import in_words, words_or_expression


@pytest.mark.parametrize(
    ("expression", "tz", "said"),
    [
        ("0 2 * * *", "Europe/Berlin", "every day at 02:00, Berlin time"),
        ("@daily", "America/New_York", "every day at 00:00, New York time"),
        ("@hourly", "UTC", "every hour, UTC"),
        ("* * * * *", "UTC", "every minute, UTC"),
        ("*/15 * * * *", "UTC", "every 15 minutes, UTC"),
        ("*/15 8-18 * * MON-FRI", "UTC", "every 15 minutes from 08:00 to 18:59 on Monday to Friday, UTC"),
        ("30 * * * *", "UTC", "every hour at :30, UTC"),
        ("0 */6 * * *", "UTC", "every 6 hours, UTC"),
        ("0 9-17 * * *", "UTC", "every hour from 09:00 to 17:00, UTC"),
        ("0 7 * * MON", "UTC", "on Monday at 07:00, UTC"),
        ("0 7,19 * * 1,5", "UTC", "on Monday and Friday at 07:00 and 19:00, UTC"),
        ("0 4 L * *", "UTC", "on the last day of the month at 04:00, UTC"),
        ("0 4 * * MON#2", "UTC", "on the second Monday at 04:00, UTC"),
        ("0 4 * * FRIL", "UTC", "on the last Friday at 04:00, UTC"),
        ("0 4 1,15 * *", "UTC", "on day 1 and day 15 of the month at 04:00, UTC"),
        ("0 4 1 * MON", "UTC", "on day 1 of the month and also on Monday at 04:00, UTC"),
        ("@yearly", "UTC", "on day 1 of the month at 00:00 in January, UTC"),
        ("0 0 * JUN-AUG *", "UTC", "at 00:00 in June to August, UTC"),
        ("*/10 * * * * *", "UTC", "every 10 seconds, UTC"),
        ("5 30 2 * * *", "UTC", "every day at 02:30:05, UTC"),
        ("*/7 * * * *", "UTC", "every 7 minutes of each hour, UTC"),
        ("@every 90s", "UTC", "every 90 seconds"),
        ("@every 1m", "Europe/Berlin", "every minute"),
        ("@every 2h", "UTC", "every 2 hours"),
    ],
)
def test_an_expression_is_said_as_a_person_would(expression: str, tz: str, said: str) -> None:
    assert in_words(expression, tz) == said


def test_what_cannot_be_read_is_shown_as_it_is() -> None:
    with pytest.raises(ArgumentError):
        in_words("61 * * * *", "UTC")
    assert words_or_expression("61 * * * *", "UTC") == "61 * * * *"
