"""Pulse's HTTP API: documents and jobs, limits and money, workers."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from perdure import Desk, JobView, Page
from perdure_systems.kit.web import JsonResponse, Problem, read_body, read_page
from perdure_systems.pulse import operations
from perdure_systems.pulse.documents import UnreadableDocument, read, read_file
from perdure_systems.pulse.jobs import HANDLERS, app, records
from perdure_systems.pulse.settings import read_settings
from perdure_systems.pulse.submitting import Submitted, submit, submit_folder
from perdure_systems.pulse.web.money import Money, NewLimits, change_limits, money
from perdure_systems.pulse.web.views import Shown, show_all, show_page

ACTOR: Final = "pulse-api"
_CHILDREN_LIMIT: Final = 500


class NewJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A document to be ingested: a file of the folder, or its text."""

    source: str
    handler: str = "summary"
    text: str | None = None


class Scan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What to do with every file of the folder."""

    handler: str = "summary"


class Listed(msgspec.Struct, frozen=True):
    """A page of jobs."""

    jobs: list[Shown]
    page: int
    more: bool


class Detailed(msgspec.Struct, frozen=True):
    """A job with what came out of it, and its children."""

    job: Shown
    result: object
    children: list[Shown]


async def desk() -> Desk:
    """The desk of the API."""
    return await app.desk(ACTOR)


async def submit_job(request: Request) -> Response:
    """Ingest a document; 201, or 200 with the job that is at it already."""
    new = await read_body(request, NewJob)
    _check_handler(new.handler)
    folder = read_settings().documents
    try:
        if new.text is not None:
            document = read(new.source, new.text)
        elif folder is None:
            raise Problem(HTTPStatus.BAD_REQUEST, "text is missing, and no folder of documents is set", field="text")
        else:
            document = await asyncio.to_thread(read_file, folder, new.source)
    except UnreadableDocument as error:
        raise Problem(HTTPStatus.BAD_REQUEST, str(error), field="source") from None
    submitted = await submit(new.source, new.handler, document)
    status = HTTPStatus.CREATED if submitted.is_new else HTTPStatus.OK
    return JsonResponse(await _shown(submitted), status)


async def scan_folder(request: Request) -> Response:
    """Ingest every document of the folder; files that are being ingested are left alone, and bad ones are named."""
    handler = (await read_body(request, Scan)).handler
    _check_handler(handler)
    folder = read_settings().documents
    if folder is None:
        raise Problem(HTTPStatus.CONFLICT, "no folder of documents is set: set PULSE_DOCUMENTS")
    scanned = await submit_folder(folder, handler)
    jobs = [await _shown(one) for one in scanned.submitted]
    return JsonResponse({"jobs": jobs, "refused": scanned.refused}, HTTPStatus.CREATED)


async def list_jobs(request: Request) -> Response:
    """The jobs that were handed in, newest first."""
    page = read_page(request)
    state = request.query_params.get("state") or None
    shown, more = await show_page(await desk(), state, Page(limit=page.size, number=page.number))
    return JsonResponse(Listed(shown, page.number, more))


async def show_job(request: Request) -> Response:
    """One job with its result and its children."""
    at = await desk()
    view = await operations.find(at, request.path_params["id"])
    [shown] = await show_all(at, [view])
    children = await show_all(at, await operations.children_of(at, view, _CHILDREN_LIMIT))
    return JsonResponse(Detailed(shown, await result_of(view), children))


async def result_of(view: JobView) -> object:
    """What came out of a job: the joined findings of a document, or what the handler has returned."""
    if view.kind == "pulse.ingest":
        return await records.result(view.arguments["document"])
    return view.value


async def pause_job(request: Request) -> Response:
    """Let a job and its children wait."""
    return await _answer(await operations.pause(await desk(), request.path_params["id"]))


async def resume_job(request: Request) -> Response:
    """Resume a paused job."""
    return await _answer(await operations.resume(await desk(), request.path_params["id"]))


async def cancel_job(request: Request) -> Response:
    """Call a job off."""
    return await _answer(await operations.cancel(await desk(), request.path_params["id"]))


async def delete_job(request: Request) -> Response:
    """Delete a job; its active children are cancelled."""
    await operations.delete(await desk(), request.path_params["id"])
    return Response(status_code=HTTPStatus.NO_CONTENT)


async def show_money(_: Request) -> Response:
    """Limits, and what was spent."""
    return JsonResponse(await money(await desk()))


async def set_limits(request: Request) -> Response:
    """Set limits; jobs that wait for money or a turn look again at once."""
    changed: Money = await change_limits(await desk(), await read_body(request, NewLimits))
    return JsonResponse(changed)


async def list_workers(_: Request) -> Response:
    """The workers, and whether they open, work or close."""
    return JsonResponse(await (await desk()).workers())


async def _answer(view: JobView) -> Response:
    at = await desk()
    return JsonResponse((await show_all(at, [(await at.job(view.id, lines=0)).job]))[0])


async def _shown(submitted: Submitted) -> Shown:
    at = await desk()
    return (await show_all(at, [(await at.job(submitted.job_id, lines=0)).job]))[0]


def _check_handler(handler: str) -> None:
    if handler not in HANDLERS:
        raise Problem(
            HTTPStatus.BAD_REQUEST, f"handler must be one of {', '.join(HANDLERS)}, got {handler!r}", field="handler"
        )


ROUTES: Final = [
    Route("/api/pulse/jobs", submit_job, methods=["POST"]),
    Route("/api/pulse/jobs", list_jobs),
    Route("/api/pulse/scan", scan_folder, methods=["POST"]),
    Route("/api/pulse/jobs/{id}", show_job),
    Route("/api/pulse/jobs/{id}", delete_job, methods=["DELETE"]),
    Route("/api/pulse/jobs/{id}/pause", pause_job, methods=["POST"]),
    Route("/api/pulse/jobs/{id}/resume", resume_job, methods=["POST"]),
    Route("/api/pulse/jobs/{id}/cancel", cancel_job, methods=["POST"]),
    Route("/api/pulse/budget", show_money),
    Route("/api/pulse/budget", set_limits, methods=["PUT"]),
    Route("/api/pulse/workers", list_workers),
]
