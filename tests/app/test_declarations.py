"""What an app refuses when it is made, and when jobs are declared: by name, and with what to do."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

from perdure import App, HttpTriage, SettingsError

UNUSED = "sqlite:///unused.db"


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


def test_a_misspelt_option_of_a_job_is_reported_by_name() -> None:
    app = App(UNUSED)

    async def send() -> None: ...

    with pytest.raises(SettingsError, match=r"option retries of job send is not known: did you mean retry\?"):
        declare(app, retries=3)(send)
    with pytest.raises(
        SettingsError,
        match=r"option colour of job mail is not known: there are name, queue, .*breaker, fair, .*state_words$",
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
    ("options", "problem"),
    [
        ({"retry": 3}, r"^retry of job send must be a Retry, such as Retry\(attempts=3\), .* got 3$"),
        ({"retry": 0}, r"^retry of job send must be a Retry"),
        ({"triage": "http"}, "^triage of job send must be a function of the exception, got 'http'$"),
        ({"triage": HttpTriage}, "^triage of job send must be a function of the exception, got <class"),
        ({"unique": "url"}, r"^unique must be a Unique, such as Unique\(by=\"url\"\), got 'url'$"),
        ({"crashes": "3"}, "^crashes of job send must be a whole number of at least 1, got '3'$"),
        ({"crashes": 0}, "^crashes of job send must be a whole number of at least 1, got 0$"),
        ({"memory": "1g", "isolate": True}, "^memory of job send must be a whole number of at least 1, got '1g'$"),
    ],
)
def test_what_cannot_be_meant_is_refused_when_a_job_is_declared(options: dict[str, Any], problem: str) -> None:
    """Not when its first attempt has failed."""

    async def send(url: str) -> None: ...

    with pytest.raises(SettingsError, match=problem):
        declare(App(UNUSED), **options)(send)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"retry": 3}, "^retry must be a Retry"),
        ({"payload_limit": "64k"}, "^payload_limit must be a whole number of at least 1, got '64k'$"),
        ({"worker": {"concurrency": 3}}, r"^worker must be WorkerSettings, as in WorkerSettings\(concurrency=10\)"),
        ({"url": 5}, "^url must be text, got int: use sqlite:///"),
        ({"url": "jobs.db"}, "^url has no scheme: use sqlite:///"),
        (
            {"url": "sqlite:///jobs.db?drvier=apsw"},
            "^url has an unknown option 'drvier': SQLite takes driver and prefix$",
        ),
        ({"url": "postgresql://host/db?prepare=no"}, "^url has prepare='no': write on or off$"),
    ],
)
def test_what_cannot_be_meant_is_refused_when_an_app_is_made(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(SettingsError, match=problem):
        App(**{"url": UNUSED, **options})


class Shop:
    def send(self, to: str) -> None: ...

    @classmethod
    def sell(cls, what: str) -> None: ...

    @staticmethod
    def count(what: str) -> None: ...


def test_a_method_is_refused_where_it_is_declared() -> None:
    with pytest.raises(SettingsError, match=r"job Shop\.send is a method, and a worker has no object"):
        App(UNUSED).job(Shop.send)


@pytest.mark.parametrize("method", [Shop().send, Shop.sell])
def test_a_bound_method_brings_its_object(method: Callable[..., Any]) -> None:
    assert App(UNUSED).job(method).kind.signature.names == (*inspect.signature(method).parameters,)


def test_a_static_method_is_a_function_like_any_other() -> None:
    def self_service(self: str) -> None: ...

    app = App(UNUSED)
    assert app.job(Shop.count).kind.name == "count"
    assert app.job(self_service).kind.name == "self_service"
