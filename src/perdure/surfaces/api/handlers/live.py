"""Changes as server-sent events."""

from __future__ import annotations

from starlette.responses import StreamingResponse

from perdure.errors import ArgumentError
from perdure.surfaces.api.route import Call, Given
from perdure.surfaces.server.live import TOPICS_PER_STREAM, Topic, stream
from perdure.surfaces.server.requests import access_of
from perdure.surfaces.server.topics import TOPICS, topic_of_job


class LiveQuery(Given, frozen=True, kw_only=True):
    """Topics by name, and jobs by id or ref."""

    topic: tuple[str, ...] = ()
    job: tuple[str, ...] = ()


async def follow(call: Call[LiveQuery, None]) -> StreamingResponse:
    """Follow topics and jobs as server-sent events.

    The type of an event is its topic, or `job`; its data is the JSON of the matching GET. Each topic sends its first
    event within a second, then one after each change, at most one a second. `away` and `back` report that the database
    is unavailable and available again. A comment every 15 seconds keeps the connection open. A revoked token ends the
    stream with an event `end`. Without parameters it follows the overview.
    """
    topics = [_named(name) for name in call.query.topic] + [topic_of_job(name) for name in call.query.job]
    if len(topics) > TOPICS_PER_STREAM:
        raise ArgumentError("topic", f"and job may name at most {TOPICS_PER_STREAM} together, got {len(topics)}")
    return stream(call.site.live, topics or [_named("overview")], access_of(call.request))


def _named(name: str) -> Topic:
    if name not in TOPICS:
        raise ArgumentError("topic", f"{name!r} is unknown; there is {', '.join(TOPICS)}")
    return Topic(name, name, TOPICS[name])
