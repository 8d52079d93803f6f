"""What an app refuses when it is made, and when jobs are declared: by name, and with what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from perdure import App, SettingsError
from perdure.engines.connect import store_for

UNUSED = "sqlite:///unused.db"


@pytest.mark.parametrize("url", ["sqlite:///:memory:", "sqlite:///file::memory:", "sqlite:///:memory:?driver=sqlite3"])
def test_sqlite_in_memory_is_refused_and_leaves_no_file(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SettingsError, match=r"url names :memory:.*perdure\.testing"):
        App(url)
    assert list(tmp_path.iterdir()) == []


def test_one_text_is_no_list_of_queues() -> None:
    with pytest.raises(SettingsError, match=re.escape("queues must be a list of names, got 'mail'")):
        App(UNUSED, queues="mail")
    assert App(UNUSED, queues=["mail"]).queues == frozenset({"mail"})


@pytest.mark.parametrize("patience", ["a while", -1, None])
def test_patience_that_is_no_duration_is_a_wrong_setting(patience: Any) -> None:
    with pytest.raises(SettingsError, match="enqueue_patience"):
        App(UNUSED, enqueue_patience=patience)


def declare(app: App, **options: Any) -> Callable[..., Any]:
    decorator: Callable[..., Any] = app.job(**options)
    return decorator


def test_a_misspelt_option_of_a_job_is_told_by_name() -> None:
    app = App(UNUSED)

    async def send() -> None: ...

    with pytest.raises(SettingsError, match=r"option retries of job send is not known: did you mean retry\?"):
        declare(app, retries=3)(send)
    with pytest.raises(
        SettingsError, match=r"option colour of job mail is not known: there are name, queue, .*breaker, fair$"
    ):
        declare(app, colour="red", name="mail")(send)
    with pytest.raises(SettingsError, match="job must be declared on a function, got 'send'"):
        declare(app)("send")
    assert app.kinds == {}


def test_options_beside_the_handler_count_too() -> None:
    app = App(UNUSED)
    job: Any = app.job

    async def send() -> None: ...

    job(send, name="mail", priority=1)
    assert app.kinds["mail"].priority == 1


@pytest.mark.parametrize(
    "url", ["sqlite://ada:pw@host/jobs.db", "mysql://ada:pw@host/db", "postgresql://ada:pw@[host/db", "sqlite://a:pw@h"]
)
def test_a_url_that_is_refused_keeps_its_password(url: str) -> None:
    with pytest.raises(SettingsError, match="url") as refused:
        store_for(url)
    assert "pw" not in str(refused.value)
