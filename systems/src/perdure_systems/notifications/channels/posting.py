"""One POST of JSON, for the channels that speak HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from http.client import responses
from typing import Any, Final

import httpx
import msgspec

from perdure_systems.notifications.channels.notifier import DeliveryError

_ANSWER_SHOWN_CHARACTERS: Final = 300
_NO_HEADERS: Final[Mapping[str, str]] = {}


async def post(
    http: httpx.AsyncClient, name: str, url: str, content: Any, headers: Mapping[str, str] = _NO_HEADERS
) -> httpx.Response:
    """Send `content` as JSON; any answer but 2xx is a `DeliveryError` with the beginning of what was answered.

    Addresses of Slack and Teams are secrets. So errors name the receiver, and the original error is not chained.
    """
    body = content if isinstance(content, bytes) else msgspec.json.encode(content)
    try:
        answer = await http.post(url, content=body, headers={"Content-Type": "application/json", **headers})
    except httpx.TimeoutException:
        raise DeliveryError(f"{name} did not answer in time") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise DeliveryError(f"{name} cannot be reached: {type(error).__name__}") from None
    if not answer.is_success:
        raise refusal(name, answer.status_code, answer.text)
    return answer


def refusal(name: str, status: int, text: str) -> DeliveryError:
    """The error for an answer that is not 2xx, with the beginning of what was answered."""
    return DeliveryError(
        f"{name} answered {status} {responses.get(status, '')}".rstrip()
        + f": {' '.join(text.split())[:_ANSWER_SHOWN_CHARACTERS]}"
    )
