"""The API of certificates: request, read, download, renew, delete."""

from __future__ import annotations

import uuid
from http import HTTPStatus
from typing import Annotated, Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from perdure import JobFilter
from perdure_systems.certificates.jobs import ISSUE, database, desk, now, request, tag
from perdure_systems.certificates.records import (
    BY_ID,
    PAGE,
    STATUSES,
    Certificate,
    add_certificate,
    delete_certificate,
)
from perdure_systems.certificates.settings import read_settings
from perdure_systems.certificates.signing import Authority
from perdure_systems.kit.web import JsonResponse, Problem, read_body, read_page

Name = Annotated[
    str, msgspec.Meta(min_length=1, max_length=253, pattern=r"^(\*\.)?([A-Za-z0-9_-]{1,63}\.)*[A-Za-z0-9_-]{1,63}$")
]
Person = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
_ACTIVE: Final = ("scheduled", "ready", "running", "retrying", "waiting", "paused")


class NewCertificate(msgspec.Struct, forbid_unknown_fields=True):
    """What `POST /api/v1/certificates` takes. `requested_by` is the owner unless it is given."""

    common_name: Name
    owner: Person
    requested_by: Person | None = None
    sans: Annotated[list[Name], msgspec.Meta(max_length=100)] = []
    lifetime_hours: Annotated[int, msgspec.Meta(ge=1, le=8760)] = 2160
    needs_csr: bool = False
    needs_approval: bool = False


class Renewal(msgspec.Struct, forbid_unknown_fields=True):
    """What `POST …/renew` takes."""

    requested_by: Person = "operator"


def certificate_fields(one: Certificate) -> dict[str, Any]:
    """A certificate as the API shows it: everything but the PEM text."""
    fields = msgspec.structs.asdict(one)
    del fields["pem"]
    return fields


async def find_certificate(http: Request) -> Certificate:
    """The certificate that the path names; 404 if there is none."""
    found = await database.one(Certificate, BY_ID, {"id": http.path_params["id"]})
    if found is None:
        raise Problem(HTTPStatus.NOT_FOUND, f"there is no certificate {http.path_params['id']!r}")
    return found


async def create_certificate(http: Request) -> Response:
    """Store a certificate and its job in one transaction."""
    given = await read_body(http, NewCertificate)
    fields = msgspec.structs.asdict(given)
    fields["requested_by"] = given.requested_by or given.owner
    fields["common_name"] = given.common_name.lower()
    certificate = Certificate(id=uuid.uuid4().hex, status="requested", created_at=await now(), **fields)
    async with database.transaction() as session:
        if not await add_certificate(session, certificate):
            detail = f"common_name {certificate.common_name!r} has a certificate already: renew or delete it"
            raise Problem(HTTPStatus.CONFLICT, detail, field="common_name")
        job, _ = await request(session, certificate.id, by=certificate.requested_by, because="new")
    return JsonResponse({"id": certificate.id, "job_id": job, "status": "requested"}, HTTPStatus.CREATED)


async def list_certificates(http: Request) -> Response:
    """Certificates by name; `status` filters."""
    asked = read_page(http)
    status = http.query_params.get("status", "")
    if status and status not in STATUSES:
        detail = f"status must be one of {', '.join(STATUSES)}, got {status[:50]!r}"
        raise Problem(HTTPStatus.BAD_REQUEST, detail, field="status")
    parameters = {"status": status, "size": asked.size, "skip": (asked.number - 1) * asked.size}
    found = await database.all(Certificate, PAGE, parameters)
    shown = [certificate_fields(one) for one in found]
    return JsonResponse({"certificates": shown, "page": asked.number, "per_page": asked.size})


async def show_certificate(http: Request) -> Response:
    """One certificate with its chain, and where its key is if this server has made it."""
    one = await find_certificate(http)
    key = Authority(read_settings().ca_folder).key_file(one.pem) if one.pem else None
    return JsonResponse({**certificate_fields(one), "chain": one.pem, "key_file": None if key is None else str(key)})


async def download_chain(http: Request) -> Response:
    """The certificate and its chain as a PEM file; 404 until it is issued."""
    one = await find_certificate(http)
    if one.pem is None:
        raise Problem(HTTPStatus.NOT_FOUND, f"{one.common_name} is {one.status}: there is no certificate yet")
    name = one.common_name.replace("*", "_")
    headers = {"Content-Disposition": f'attachment; filename="{name}.pem"'}
    return Response(one.pem, media_type="application/x-pem-file", headers=headers)


async def renew_certificate(http: Request) -> Response:
    """Ask for a new certificate now: 202 with a new job, 200 with the one that is under way."""
    given = await read_body(http, Renewal)
    one = await find_certificate(http)
    async with database.transaction() as session:
        job, is_new = await request(session, one.id, by=given.requested_by, because="renewed by hand")
    status = HTTPStatus.ACCEPTED if is_new else HTTPStatus.OK
    return JsonResponse({"id": one.id, "job_id": job, "is_new": is_new}, status)


async def remove_certificate(http: Request) -> Response:
    """Forget a certificate, and cancel its job. A job that slips through fails for good: it finds no certificate."""
    one = await find_certificate(http)
    async with database.transaction() as session:
        await delete_certificate(session, one.id)
    jobs = JobFilter(kind=ISSUE, tag=tag(one.id), states=_ACTIVE)
    await (await desk()).cancel(jobs, why="its certificate was deleted")
    return Response(status_code=HTTPStatus.NO_CONTENT)
