"""The tour: eight things that go wrong in real systems, and what becomes of the work.

Every step does what a user would do, over HTTP, and then checks that the promise was kept. A step that fails says so,
and the tour goes on. What there is to see is on the pages of the desk, and on those of the systems.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from shlex import quote
from shutil import which
from typing import Any, Final

import httpx

from perdure import App, ConflictError, PerdureError
from perdure_systems.authorities.standins import new_request
from perdure_systems.demo.outside import ADMIN_TOKEN, World
from perdure_systems.demo.processes import Part
from perdure_systems.demo.screen import Screen
from perdure_systems.kit.browser import find_browser
from perdure_systems.pulse.log_lines import job_id_of

_STEP_TIMEOUT_SECONDS: Final = 90.0  # for anything to happen on a busy machine
_LOOK_EVERY_SECONDS: Final = 0.2
Answer = dict[str, Any]


class StepFailed(Exception):  # noqa: N818 - says what happened
    """A step has not shown what it promised."""


class StepSkipped(Exception):  # noqa: N818 - as above
    """This machine has not what a step needs."""


class Tour:
    """Takes a reader through the demo."""

    def __init__(
        self, *, screen: Screen, world: World, addresses: dict[str, str], crew: Sequence[Part], is_first: bool
    ) -> None:
        self._screen = screen
        self._world = world
        self._addresses = addresses
        self._crew = crew
        self._is_first = is_first
        self._app = App(world.environment["PERDURE_URL"])
        self._client = httpx.AsyncClient(timeout=60, headers={"Authorization": f"Bearer {ADMIN_TOKEN}"})
        self._reader = httpx.AsyncClient(timeout=60)  # of the desk, which needs no token on this machine
        self._parent = ""

    async def take(self) -> int:
        """All steps; how many have failed."""
        steps: tuple[tuple[str, Callable[[], Awaitable[None]]], ...] = (
            ("A notification that retries", self._retrying),
            ("A dead letter, requeued", self._dead_letter),
            ("A certificate order, parked at a slow authority", self._parked_order),
            ("An audit that degrades, and still delivers its report", self._degraded_audit),
            ("A parent that waits for its children", self._waiting_parent),
            ("A worker, killed", self._killed_worker),
            ("A budget that is spent", self._spent_budget),
            ("A flag that changes at its time", self._scheduled_flag),
        )
        failed = skipped = 0
        try:
            await self._is_shown(self._request_certificates if self._is_first else self._tell_what_was_left)
            for number, (title, step) in enumerate(steps, 1):
                self._screen.step(number, len(steps), title)
                try:
                    failed += not await self._is_shown(step)
                except StepSkipped as why:
                    skipped += 1
                    self._screen.plain(f"skipped: {why}")
                await self._screen.wait_for_reader()
            self._screen.console.print()
            text = f"{len(steps) - failed - skipped} of {len(steps)} steps kept their promise"
            (self._screen.plain if failed else self._screen.good)(f"{text}, {skipped} skipped" if skipped else text)
            await self._look("one certificate waits for your approval: answer it here", "/approvals")
            await self._look("what the tour did, and who did it", "/audit")
            self._screen.say("Everything goes on until you close it. In another terminal the command line sees it too:")
            self._screen.command(f"PERDURE_URL={quote(self._world.environment['PERDURE_URL'])} {_program()} stats")
            await self._screen.wait_for_reader("close ❀")
        finally:
            await self._client.aclose()
            await self._reader.aclose()
            await self._app.close()
        return failed

    async def _is_shown(self, step: Callable[[], Awaitable[None]]) -> bool:
        """Take a step; whether it has shown what it promised."""
        try:
            await step()
        except (StepFailed, TimeoutError, PerdureError, httpx.HTTPError) as error:
            self._screen.plain(f"this step failed: {error or type(error).__name__}")
            return False
        return True

    async def _request_certificates(self) -> None:
        """Give the page of the certificates something to show: one is issued, one waits for approval."""
        for name, needs_approval in (("shop.example", False), ("bank.example", True)):
            body = {"common_name": name, "owner": "ada", "needs_approval": needs_approval}
            await self._post("certificates", "/api/v1/certificates", body)

    async def _tell_what_was_left(self) -> None:
        desk = await self._app.desk("demo")
        counts = {tally.state: tally.jobs for tally in await desk.count_by("state")}
        self._screen.say("The last demo left this behind. What is not final goes on:")
        self._screen.facts({str(state): count for state, count in sorted(counts.items())})

    async def _retrying(self) -> None:
        say, look = self._screen.say, self._screen.look
        self._world.receivers.knobs["slack"].failing = -1
        say("Slack answers 503. A message is sent all the same.")
        self._message = await self._post(
            "notifications",
            "/api/v1/notifications",
            {"channel": "slack", "subject": "Disk full", "body": "db-1 has 2 % left"},
        )
        shown = await self._until("notifications", self._message_path, lambda one: one["status"] == "failed")
        self._screen.facts(
            {
                "status": shown["status"],
                "retries": f"{shown['retry_count']}/5",
                "next retry": await self._ahead(shown["next_retry_at"]),
            }
        )
        await self._look("the job: its timeline, the failure, and the retries ahead", f"/jobs/{self._message['id']}")
        look("the same as its users see it", self._addresses["notifications"])
        self._screen.good("the failure is counted, and the retry has its time: 1, 2, 4, 8 minutes, no more")

    async def _dead_letter(self) -> None:
        self._screen.say("We do not wait 15 minutes. An operator may run a retry now; four more failures follow.")
        await self._fail_until_dead()
        await self._look("dead letters, grouped by error: requeue one as a probe, then the group", "/dead")
        self._screen.good("after five attempts it is dead, and not thrown away")
        await self._screen.wait_for_reader()
        self._world.receivers.knobs["slack"].failing = 0
        self._screen.say("Slack is back. We requeue it, as the button on the desk does.")
        await self._post("notifications", f"{self._message_path}/requeue")
        await self._until("notifications", self._message_path, lambda one: one["status"] == "sent")
        self._screen.good("sent")

    async def _fail_until_dead(self) -> None:
        """Run each retry now. For a reader who took their time some have run already, or one is running."""
        desk = await self._app.desk("demo")
        for failures in range(2, 6):
            shown = await self._get("notifications", self._message_path)
            if shown["retry_count"] < failures:
                with suppress(ConflictError):
                    await desk.run_now(self._message["id"])
            await self._until("notifications", self._message_path, lambda one, n=failures: one["retry_count"] >= n)  # type: ignore[misc]
        await self._until("notifications", self._message_path, lambda one: one["status"] == "dead")

    async def _parked_order(self) -> None:
        digicert = self._world.authorities.digicert
        digicert.behaviour.approve_after = None
        self._screen.say("DigiCert wants a person to approve. That may take days; no worker waits.")
        order = await self._post(
            "authorities", "/api/v1/orders", {"authority": "digicert", "csr": new_request("shop.example")}
        )
        path = f"/api/v1/orders/{order['id']}"
        parked = await self._until("authorities", path, lambda one: one["status"] == "parked" and one["polls"] >= 1)
        self._screen.facts(
            {"status": parked["status"], "polls": parked["polls"], "next poll": await self._ahead(parked["next_poll"])}
        )
        await self._look("the orders that wait, and why: pick one", "/jobs?q=queue:authorities%20state:waiting")
        self._screen.look(
            "the order, its polls and its deadline", f"{self._addresses['authorities']}/orders/{order['id']}"
        )
        self._screen.good("parked in the database: it survives restarts, with its poll count")
        await self._screen.wait_for_reader()
        digicert.approve(parked["authority_order"])
        self._screen.say("The person approves. We poll now instead of waiting for the next time.")
        await self._post("authorities", f"{path}/poll")
        issued = await self._until("authorities", path, lambda one: one["status"] == "issued")
        self._screen.good(f"issued, and its chain verified: {', '.join(issued['names'])}")

    async def _degraded_audit(self) -> None:
        if find_browser() is None:
            raise StepSkipped("there is no Chromium on this machine, and audits need one for pictures and the PDF")
        self._screen.say("The shop refuses our browser. The measurement is there, the pictures are not.")
        scan = await self._post("audits", "/api/v1/scan", {"url": self._world.refusing_page})
        path = f"/api/v1/audits/{scan['id']}"
        shown = await self._until("audits", path, lambda one: one["finished_at"] is not None)
        _check(shown["report"] is not None, f"the audit should have a report: {shown['error']}")
        steps = {step["name"]: step["status"] for step in shown["processing_steps"]}
        self._screen.facts(steps)
        _check(steps["screenshots"] == "completed_with_warnings", f"screenshots are {steps['screenshots']}")
        await self._look("its steps, with data and warnings", f"/jobs/{scan['id']}")
        self._screen.look("the audit and its PDF", f"{self._addresses['audits']}/audits/{scan['id']}")
        self._screen.good("the report was made and delivered; the webhook says truthfully what is missing")

    async def _waiting_parent(self) -> None:
        self._world.model.open.clear()
        self._screen.say("A document is split. Each part is a child that asks a model, and the model is silent.")
        await self._put("pulse", "/api/pulse/budget", {"daily": 1.0})  # the last demo may have left less
        job = await self._post("pulse", "/api/pulse/jobs", {"source": "night-shift.md"})
        self._parent = job["id"]
        shown = await self._until("pulse", self._parent_path, lambda one: _running(one) > 0)
        facts = {"phase": shown["job"]["phase"], "children": len(shown["children"]), "running": _running(shown)}
        self._screen.facts(facts)
        await self._look("the parent; its children are drawn as a tree", f"/jobs/{job_id_of(self._parent)}")
        await self._look("workers, and what each runs: look here while we kill one", "/workers")
        self._screen.good("the parent holds no worker while it waits")

    async def _killed_worker(self) -> None:
        victim = self._crew[0]
        self._screen.say(f"We kill worker process {victim.pid} with SIGKILL, in the middle of its children.")
        await victim.kill()
        held = await self._get("pulse", self._parent_path)
        self._screen.good(f"killed: {_running(held)} children still count as running, and nothing could be cleaned up")
        await victim.start()
        self._world.model.open.set()
        self._screen.say(f"✿ Process {victim.pid} opens. What the dead one held comes back: one at once, then more.")
        shown = await self._until(
            "pulse", self._parent_path, lambda one: one["job"]["state"] in {"completed", "failed", "cancelled"}
        )
        _check(shown["job"]["state"] == "completed", f"the parent is {shown['job']['state']}: {shown['job']['error']}")
        states = {child["state"] for child in shown["children"]}
        _check(states == {"completed"}, f"children are {states}")
        self._screen.good(f"all {len(shown['children'])} children and their parent are done")

    async def _spent_budget(self) -> None:
        money = await self._get("pulse", "/api/pulse/budget")
        spent = money["spent"]["daily"] if isinstance(money.get("spent"), dict) else 0.0
        await self._put("pulse", "/api/pulse/budget", {"daily": round(spent + 0.005, 4)})
        self._screen.say("The day's budget leaves half a cent. Another document costs more than that.")
        job = await self._post("pulse", "/api/pulse/jobs", {"source": "lighthouse.md"})
        path = f"/api/pulse/jobs/{job['id']}"
        held = await self._until(
            "pulse", path, lambda one: any(child["reason"] == "budget_exceeded" for child in one["children"])
        )
        waiting = [child for child in held["children"] if child["reason"] == "budget_exceeded"]
        self._screen.facts({"children": len(held["children"]), "held by the budget": len(waiting)})
        await self._look("budgets, rates and breakers", "/gates")
        self._screen.look("what is spent, and what waits for money", f"{self._addresses['pulse']}/money")
        self._screen.good("paused with its reason; no attempt is lost, and nothing is overspent")
        await self._screen.wait_for_reader()
        await self._put("pulse", "/api/pulse/budget", {"daily": 1.0})
        self._screen.say("An operator raises the limit.")
        done = await self._until("pulse", path, lambda one: one["job"]["state"] in {"completed", "failed"})
        _check(done["job"]["state"] == "completed", f"the document is {done['job']['state']}: {done['job']['error']}")
        self._screen.good("it resumes by itself")

    async def _scheduled_flag(self) -> None:
        key = f"dark-mode-{(await self._now()).strftime('%H%M%S')}"
        await self._post("flags", "/api/admin/flags", {"key": key})
        at = await self._now() + timedelta(seconds=4)
        path = f"/api/admin/flags/{key}/schedule"
        made = await self._post(
            "flags", path, {"updates": {"enabled": True, "rollout": 50}, "scheduledAt": at.isoformat()}
        )
        self._screen.say(f"The flag {key} is to be on for half of the users in 4 seconds.")
        await self._look("the jobs of the flags", "/jobs?q=queue:flags")
        self._screen.look("flags, schedules and retry metrics (token: demo-admin-token)", self._addresses["flags"])
        ref = made.get("id") or made.get("scheduleId")
        applied = await self._until("flags", f"{path}/{ref}", lambda one: one["status"] == "applied")
        self._screen.facts({"status": applied["status"], "applied at": applied["appliedAt"]})
        self._screen.good("flag and schedule changed in one transaction, once")

    async def _look(self, text: str, path: str) -> None:
        """Point at a page of the desk, which must be there."""
        address = f"{self._addresses['desk']}{path}"
        shown = await self._reader.get(address)
        _check(shown.is_success, f"{address} answered {shown.status_code}")
        self._screen.look(text, address)

    @property
    def _message_path(self) -> str:
        return f"/api/v1/notifications/{self._message['id']}"

    @property
    def _parent_path(self) -> str:
        return f"/api/pulse/jobs/{self._parent}"

    async def _now(self) -> datetime:
        return await (await self._app.desk("demo")).now()

    async def _ahead(self, at: str) -> str:
        """A time to come, as people say it."""
        seconds = (datetime.fromisoformat(at) - await self._now()).total_seconds()
        return f"in {max(0, round(seconds))} s"

    async def _post(self, system: str, path: str, body: Answer | None = None) -> Answer:
        return _answered(await self._client.post(f"{self._addresses[system]}{path}", json=body or {}))

    async def _put(self, system: str, path: str, body: Answer) -> Answer:
        return _answered(await self._client.put(f"{self._addresses[system]}{path}", json=body))

    async def _get(self, system: str, path: str) -> Answer:
        return _answered(await self._client.get(f"{self._addresses[system]}{path}"))

    async def _until(self, system: str, path: str, is_so: Callable[[Answer], bool]) -> Answer:
        """Ask again and again until it is so; the answer."""
        last: Answer = {}
        try:
            async with asyncio.timeout(_STEP_TIMEOUT_SECONDS):
                while True:
                    last = await self._get(system, path)
                    if is_so(last):
                        return last
                    await asyncio.sleep(_LOOK_EVERY_SECONDS)
        except TimeoutError:
            raise StepFailed(
                f"{path} did not get there within {_STEP_TIMEOUT_SECONDS:g} s: {str(last)[:300]}"
            ) from None


def _program() -> str:
    """The command line as a shell finds it from here: it may be in an environment that is not active."""
    beside = Path(sys.executable).with_name("perdure")
    found = which("perdure")
    return "perdure" if not beside.exists() or (found and beside.samefile(found)) else quote(str(beside))


def _answered(response: httpx.Response) -> Answer:
    if response.is_error:
        raise StepFailed(
            f"{response.request.method} {response.request.url} answered {response.status_code}: {response.text}"
        )
    answer: Answer = response.json()
    return answer


def _running(parent: Answer) -> int:
    return sum(1 for child in parent["children"] if child["state"] == "running")


def _check(holds: bool, otherwise: str) -> None:
    if not holds:
        raise StepFailed(otherwise)
