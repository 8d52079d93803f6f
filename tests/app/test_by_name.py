"""Arguments that came as JSON become what a call from Python would give, or are refused by name."""

from __future__ import annotations

from datetime import date

import pytest

from perdure import App, NotFoundError, PayloadError
from perdure.app.by_name import typed_arguments


@pytest.fixture
def app() -> App:
    app = App("sqlite:///unused.db")

    @app.job
    async def remind(who: str, day: date, times: int = 1) -> None: ...

    return app


def test_they_have_the_types_of_the_handler_and_no_defaults_are_added(app: App) -> None:
    given = {"day": "2026-01-31", "who": "ada"}
    assert typed_arguments(app, "remind", given) == {"day": date(2026, 1, 31), "who": "ada"}


def test_what_does_not_fit_is_refused(app: App) -> None:
    with pytest.raises(PayloadError, match="day"):
        typed_arguments(app, "remind", {"who": "ada", "day": "soon"})
    with pytest.raises(PayloadError, match="day"):
        typed_arguments(app, "remind", {"who": "ada"})
    with pytest.raises(PayloadError, match="colour"):
        typed_arguments(app, "remind", {"who": "ada", "day": "2026-01-31", "colour": "red"})
    with pytest.raises(NotFoundError, match="forget"):
        typed_arguments(app, "forget", {})
