"""Local receivers for all six channels, over real sockets: for tests, and for a demo without any account.

They check what they are sent as the real ones do, and can be made slow, failing or rate limiting:

    async with StandIns() as receivers:
        os.environ |= receivers.environment()
        receivers.knobs["slack"].failing = 2

Run alone, they print the variables of `.env.example` with their own addresses:
`python -m perdure_systems.notifications.standins --failing 2 --slow 0.5`.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from argparse import ArgumentParser
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, Final, Self

import msgspec
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from perdure_systems.kit.serving import LOOPBACK, bind, serving
from perdure_systems.notifications.channels.message import Channel

ROUTING_KEY: Final = "R0UT1NGKEY0000000000000000000000"
API_KEY: Final = "opsgenie-key"
WEBHOOK_SECRET: Final = "webhook-secret"  # noqa: S105 - of a stand-in
_ALERT_LIMIT_CHARACTERS: Final = 130


class Knobs(msgspec.Struct):
    """How a receiver behaves: `failing` requests more are refused with `status` and `text`, all of them with -1."""

    failing: int = 0
    status: int = 503
    text: str = "the stand-in was told to refuse"
    slow: float = 0.0

    async def delay(self) -> bool:
        """Be slow; whether this request is to be refused."""
        await asyncio.sleep(self.slow)
        if self.failing == 0:
            return False
        self.failing -= 1 if self.failing > 0 else 0
        return True


class Delivery(msgspec.Struct, frozen=True):
    """What a receiver has taken."""

    content: Any
    headers: dict[str, str]
    body: bytes = b""


class StandIns:
    """Receivers for all channels, open while the block runs."""

    def __init__(self, *, smtp_tls: ssl.SSLContext | None = None, smtp_login: tuple[str, str] | None = None) -> None:
        self.knobs: dict[str, Knobs] = defaultdict(Knobs)
        self.taken: dict[str, list[Delivery]] = defaultdict(list)
        self.seen: dict[str, int] = defaultdict(int)
        self.http_url = ""
        self.smtp_port = 0
        self._smtp_tls = smtp_tls
        self._smtp_login = smtp_login
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Open all receivers on free ports of this machine."""
        self.http_url = await self._stack.enter_async_context(serve(self._application()))
        self.smtp_port = await self._stack.enter_async_context(self._smtp_server())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close them."""
        await self._stack.aclose()

    def environment(self) -> dict[str, str]:
        """The variables that set up all channels to send here."""
        return {
            "CERTCTL_SMTP_HOST": "127.0.0.1",
            "CERTCTL_SMTP_PORT": str(self.smtp_port),
            "CERTCTL_SMTP_USE_TLS": "true" if self._smtp_tls else "false",
            "CERTCTL_SMTP_USERNAME": self._smtp_login[0] if self._smtp_login else "",
            "CERTCTL_SMTP_PASSWORD": self._smtp_login[1] if self._smtp_login else "",
            "CERTCTL_SMTP_FROM_ADDRESS": "certctl@example.com",
            "CERTCTL_SMTP_TO_ADDRESS": "ops@example.com",
            "CERTCTL_WEBHOOK_URL": f"{self.http_url}/webhook",
            "CERTCTL_WEBHOOK_SECRET": WEBHOOK_SECRET,
            "CERTCTL_SLACK_WEBHOOK_URL": f"{self.http_url}/services/T0/B0/slack-secret",
            "CERTCTL_TEAMS_WEBHOOK_URL": f"{self.http_url}/workflows/teams-secret",
            "CERTCTL_PAGERDUTY_URL": self.http_url,
            "CERTCTL_PAGERDUTY_ROUTING_KEY": ROUTING_KEY,
            "CERTCTL_OPSGENIE_URL": self.http_url,
            "CERTCTL_OPSGENIE_API_KEY": API_KEY,
        }

    def _application(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/webhook", self._webhook, methods=["POST"]),
                Route("/services/{path:path}", self._slack, methods=["POST"]),
                Route("/workflows/{path:path}", self._teams, methods=["POST"]),
                Route("/v2/enqueue", self._pagerduty, methods=["POST"]),
                Route("/v2/alerts", self._opsgenie, methods=["POST"]),
            ]
        )

    async def _webhook(self, request: Request) -> Response:
        return await self._refused(Channel.WEBHOOK, request) or await self._take(
            Channel.WEBHOOK, request, PlainTextResponse("taken")
        )

    async def _slack(self, request: Request) -> Response:
        if refused := await self._refused(Channel.SLACK, request):
            return refused
        if not (await request.json()).get("text"):
            return PlainTextResponse("no_text", 400)
        return await self._take(Channel.SLACK, request, PlainTextResponse("ok"))

    async def _teams(self, request: Request) -> Response:
        if refused := await self._refused(Channel.TEAMS, request):
            return refused
        content = await request.json()
        cards = [one.get("content", {}).get("type") for one in content.get("attachments", [])]
        if content.get("type") != "message" or cards != ["AdaptiveCard"]:
            return JSONResponse({"error": {"code": "InvalidRequestContent"}}, 400)
        return await self._take(Channel.TEAMS, request, Response(status_code=202))

    async def _pagerduty(self, request: Request) -> Response:
        if refused := await self._refused(Channel.PAGERDUTY, request):
            return refused
        event = await request.json()
        payload = event.get("payload", {})
        missing = [f"'{name}' is missing" for name in ("summary", "source", "severity") if not payload.get(name)]
        if event.get("routing_key") != ROUTING_KEY:
            missing.append("'routing_key' is invalid")
        if event.get("event_action") != "trigger" or missing:
            return JSONResponse(
                {"status": "invalid event", "message": "Event object is invalid", "errors": missing}, 400
            )
        said = {"status": "success", "message": "Event processed", "dedup_key": event["dedup_key"]}
        return await self._take(Channel.PAGERDUTY, request, JSONResponse(said, 202))

    async def _opsgenie(self, request: Request) -> Response:
        if refused := await self._refused(Channel.OPSGENIE, request):
            return refused
        if request.headers.get("authorization") != f"GenieKey {API_KEY}":
            return JSONResponse({"message": "Could not authenticate", "requestId": "1"}, 422)
        if not 1 <= len((await request.json()).get("message", "")) <= _ALERT_LIMIT_CHARACTERS:
            return JSONResponse({"message": "Request body is not processable", "requestId": "1"}, 422)
        said = {"result": "Request will be processed", "took": 0.1, "requestId": "1"}
        return await self._take(Channel.OPSGENIE, request, JSONResponse(said, 202))

    async def _refused(self, channel: Channel, request: Request) -> Response | None:
        self.seen[channel] += 1
        await request.body()
        knobs = self.knobs[channel]
        return PlainTextResponse(knobs.text, knobs.status) if await knobs.delay() else None

    async def _take(self, channel: Channel, request: Request, answer: Response) -> Response:
        body = await request.body()
        self.taken[channel].append(Delivery(msgspec.json.decode(body), dict(request.headers), body))
        return answer

    @asynccontextmanager
    async def _smtp_server(self) -> AsyncIterator[int]:
        def session() -> SMTP:
            return SMTP(
                _Mailbox(self),
                hostname="localhost",
                enable_SMTPUTF8=True,
                tls_context=self._smtp_tls,
                require_starttls=self._smtp_tls is not None,
                auth_required=self._smtp_login is not None,
                authenticator=self._authenticate if self._smtp_login else None,
            )

        server = await asyncio.get_running_loop().create_server(session, "127.0.0.1", 0)
        try:
            yield int(server.sockets[0].getsockname()[1])
        finally:
            server.close()

    def _authenticate(self, _server: SMTP, _session: Session, _envelope: Envelope, _way: str, given: Any) -> AuthResult:
        ours = tuple(text.encode() for text in self._smtp_login or ())
        is_right = isinstance(given, LoginPassword) and (given.login, given.password) == ours
        return AuthResult(success=is_right, handled=False)


class _Mailbox:
    """Takes mail, or refuses it as a busy server does."""

    def __init__(self, standins: StandIns) -> None:
        self._standins = standins

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802 - aiosmtpd's
        """Answer to a message."""
        self._standins.seen[Channel.EMAIL] += 1
        knobs = self._standins.knobs[Channel.EMAIL]
        if await knobs.delay():
            return f"451 4.3.0 {knobs.text}"
        raw = envelope.content if isinstance(envelope.content, bytes) else b""
        mail: EmailMessage = message_from_bytes(raw, policy=policy.default)
        headers = {name.lower(): str(value) for name, value in mail.items()} | {"rcpt": ",".join(envelope.rcpt_tos)}
        self._standins.taken[Channel.EMAIL].append(Delivery(mail.get_content(), headers, raw))
        return "250 2.0.0 taken"


@asynccontextmanager
async def serve(application: Starlette) -> AsyncIterator[str]:
    """Serve an application on a free port of this machine while the block runs; its address."""
    with closing(bind(LOOPBACK, 0)) as listening:
        async with serving(application, listening, log_level="error", timeout_graceful_shutdown=1) as address:
            yield address


async def _run(failing: int, slow: float) -> None:
    async with StandIns() as standins:
        for channel in Channel:
            standins.knobs[channel] = Knobs(failing=failing, slow=slow)
        for name, value in standins.environment().items():
            print(f"{name}={value}", flush=True)  # noqa: T201 - for an .env file
        await asyncio.Event().wait()


def main() -> None:
    """Run until Ctrl-C."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--failing", type=int, default=0, help="refuse so many requests of each channel; -1: all")
    parser.add_argument("--slow", type=float, default=0.0, help="seconds that each answer takes")
    given = parser.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_run(given.failing, given.slow))


if __name__ == "__main__":
    main()
