"""What a desk and commands on a database answer: `python -m tests.support.programs.look_at_desk URL TOKEN`."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from typing import Any

from tests.support.web.desk_pages import PAGES
from tests.support.web.http_site import client_of
from tests.surfaces.conftest import run_cli

from perdure.surfaces.api.routes import ROUTES
from perdure.surfaces.desk.pages import ROOMS
from perdure.surfaces.server.site import Site

JOB = "0198a4e2-0000-7000-8000-000000000000"
NOT_ASKED = {"live", "diagnostics"}
HTML = {"accept": "text/html"}
READS = (
    "jobs list",
    f"jobs show {JOB}",
    f"jobs why {JOB}",
    "jobs count",
    "jobs cancel --queue mail --dry-run",
    f"jobs delete {JOB} --dry-run",
    "dead list",
    "stats",
    "pauses",
    "workers",
    "schedules list",
    "audit list",
    "bulk list",
    "attention",
    "doctor",
)
WRITES = (f"jobs cancel {JOB}", "pause --queue mail", f"jobs delete {JOB} --yes", "jobs cancel --queue mail --yes")


async def look(url: str, token: str) -> dict[str, Any]:
    """The answers of pages, API reads and commands by path, and what the desk says of itself."""
    seen: dict[str, Any] = {"pages": {}, "reads": {}, "commands": {}}
    async with Site(url) as site, client_of(site) as client, client_of(site, token) as holder:
        for path in {re.sub(r"{\w+}", JOB, path) for path in PAGES.values()}:
            seen["pages"][path] = (await client.get(path, headers=HTML)).status_code
        for route in (one for one in ROUTES if one.tag not in NOT_ASKED):
            path = f"/api/v1{re.sub(r'{[^}]+}', JOB, route.path)}"
            answer = await holder.request(route.method, path)
            if route.method == "GET":
                seen["reads"][path] = answer.status_code
            else:
                seen["commands"][f"{route.method} {path}"] = [answer.status_code, answer.json().get("detail")]
        csrf = re.findall(r'name="_csrf" value="([^"]+)"', (await client.get("/login", headers=HTML)).text)
        login = await client.post("/login", data={"token": token, "_csrf": csrf[0]}, headers=HTML)
        seen["login"] = login.status_code
        seen["page"] = (await client.get(f"/jobs/{JOB}", headers=HTML)).text
        for entry in (one for room in ROOMS for one in room.entries if one.method == "POST"):
            refused = await client.post(re.sub(r"{[^}]+}", JOB, entry.path), headers={**HTML, "x-csrf-token": "none"})
            seen["commands"][entry.path] = [refused.status_code, None]
        seen["about"] = (await holder.get("/api/v1/about")).json()
        seen["bulk runs"] = site.bulk is not None
    return seen


def command(url: str) -> dict[str, Any]:
    """The exit codes of commands that read, and the errors of those that write."""
    env: dict[str, str | None] = {"PERDURE_URL": url}
    written = {line: run_cli(*line.split(), "--json", env=env) for line in WRITES}
    return {
        "codes": {line: run_cli(*line.split(), "--json", env=env).code for line in READS},
        "errors": {line: [one.code, one.err] for line, one in written.items()},
    }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(look(*sys.argv[1:])) | command(sys.argv[1])))  # noqa: T201 - the answer
