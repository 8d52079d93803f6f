"""Streams of the event log that meet trouble: a log that ends, readers that stop reading, writers at the same time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.web.http_server import Running, serving
from tests.support.web.http_site import make_app
from tests.surfaces.api.test_events import LOG, STREAM, Reader, client, finish

from perdure import App


@pytest.fixture
def app(engine_url: str) -> App:
    return make_app(engine_url)


@pytest.fixture
def running(app: App) -> Iterator[Running]:
    with serving(app) as running:
        yield running


def test_a_log_that_is_switched_off_ends_its_streams_with_a_word(running: Running) -> None:
    with client(running) as http, client(running) as other:
        http.put(LOG, json={}).raise_for_status()
        with http.stream("GET", STREAM) as response:
            reader = Reader(response)
            [subject] = finish(other, 1)
            assert reader.take(1)[0]["subject"] == subject
            other.delete(LOG).raise_for_status()
            [(name, said)] = list(reader.messages())
        assert name == "gone"
        assert "not logged" in said["error"]
