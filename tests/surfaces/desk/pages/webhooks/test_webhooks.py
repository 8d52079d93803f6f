"""The page of webhooks: a form that takes a secret and never shows it, and their commands, on both engines."""

from __future__ import annotations

from datetime import timedelta
from html import unescape

from httpx import ASGITransport, AsyncClient
from tests.support.builders.jobs import A_FAILURE, HOUR, apply, claim_one, employ
from tests.support.web.desk_site import desk_site

from perdure.domain.jobs.states import Reason
from perdure.domain.jobs.transition import retrying
from perdure.domain.operate.access import Scope
from perdure.domain.operate.audit import By
from perdure.domain.operate.webhook import DELIVERY, QUEUE, Webhook
from perdure.operate.commands.webhooks import Retrying
from perdure.operate.desk import Desk
from perdure.storage.port import Store
from perdure.surfaces.access.caller import Caller

GO = {"confirmed": "yes", "why": "the night shift asked"}
SECRET = "a secret of the receiver"  # noqa: S105 - of a test
HOOK = {
    "name": "billing <b>",
    "url": "https://billing.example/hook?key=k3y-of-theirs",
    "secret": SECRET,
    "events": "job.died, schedule.missed",
    "queues": "payments",
    "why": "they asked",
}
PATH = "/webhooks/billing%20%3Cb%3E"


async def test_a_webhook_is_added_shown_and_acted_on(pages: AsyncClient, store: Store) -> None:
    desk = Desk(store, "ada")
    assert "There are no webhooks." in (await pages.get("/webhooks")).text
    made = await pages.post("/webhooks", data=HOOK)
    assert (made.status_code, made.headers["location"]) == (303, "/webhooks")
    [view] = await desk.webhooks.webhooks()
    assert (view.has_secret, view.webhook.wants.queues) == (True, ("payments",))
    assert (await store.event_log()).is_on
    page = (await pages.get("/webhooks")).text
    assert "billing &lt;b&gt;" in page
    assert "No running worker delivers webhooks" in page
    assert "perdure webhooks pause 'billing <b>'" in unescape(page)
    assert SECRET not in page
    assert "k3y-of-theirs" not in page, "values in a URL may be secrets"
    for command in ("pause", "test", "delete"):
        asked = await pages.post(f"{PATH}/{command}")
        assert (asked.status_code, "billing &lt;b&gt;" in asked.text) == (200, True), "it asks first"
    assert (await desk.webhooks.webhook("billing <b>")).paused_at is None
    await pages.post(f"{PATH}/pause", data=GO)
    assert "paused" in (await pages.get("/webhooks")).text
    assert (await desk.webhooks.webhook("billing <b>")).paused_at is not None
    await pages.post(f"{PATH}/resume")
    assert (await desk.webhooks.webhook("billing <b>")).paused_at is None
    sent = await pages.post(f"{PATH}/test", data=GO)
    detail = await desk.job(sent.headers["location"].removeprefix("/jobs/"))
    assert detail.job.kind == DELIVERY
    await pages.post(f"{PATH}/delete", data=GO)
    assert await desk.webhooks.webhooks() == []
    trail = await desk.audit(action="webhook.delete")
    assert trail.entries[0].why == GO["why"]


async def test_deliveries_that_are_retried_are_shown_with_their_last_error(pages: AsyncClient, store: Store) -> None:
    desk = Desk(store, "ada")
    for name in ("billing", "crm"):
        await desk.webhooks.save(name, f"https://{name}.example", secret=SECRET)
    assert "failed and retried" not in (await pages.get("/webhooks")).text
    oldest = (await desk.job(await failed_delivery(desk, store))).job
    await failed_delivery(desk, store)
    found = await desk.webhooks.retrying()
    assert found == {
        "billing": Retrying(
            deliveries=2, capped=False, since=oldest.created_at, last_error="builtins.ValueError: no such host"
        )
    }
    page = unescape((await pages.get("/webhooks")).text)
    assert page.count("failed and retried") == 1
    assert "2 deliveries</a> failed and retried" in page
    assert "no such host" in page


async def failed_delivery(desk: Desk, store: Store) -> str:
    """A delivery of `billing` whose first attempt has failed."""
    job_id = (await desk.webhooks.test("billing")).job_id
    claim = await claim_one(store, await employ(store, queues=(QUEUE,)), QUEUE)
    await apply(store, retrying(claim, Reason.FAILED, A_FAILURE, HOUR))
    return job_id


async def test_a_webhook_with_a_mistake_comes_back_in_its_form_without_the_secret(
    pages: AsyncClient, store: Store
) -> None:
    await Desk(store, "ada").webhooks.save("crm", "https://crm.example", secret="x" * 16)
    for field, value, said in (
        ("name", "", "name"),
        ("name", "crm", "there is a webhook 'crm'"),
        ("url", "ftp://billing.example", "url"),
        ("secret", "", "is missing"),
        ("secret", "short-but-typed", "must be 16 to 500"),
        ("events", "job.died, tea.time", "got 'tea.time'"),
    ):
        answer = await pages.post("/webhooks", data={**HOOK, field: value})
        assert (answer.status_code, said in unescape(answer.text)) == (422, True), (field, answer.text)
        assert SECRET not in answer.text
        assert "short-but-typed" not in answer.text
        assert "payments" in answer.text, "the rest is not written twice"
    assert [view.webhook.name for view in await Desk(store, "ada").webhooks.webhooks()] == ["crm"]


async def test_an_operator_pauses_and_only_an_admin_adds_and_deletes(store: Store) -> None:
    state = await store.switch_event_log(timedelta(days=1), By("code"))
    declared = Webhook(name="coded", url="https://coded.example", is_declared=True)
    await store.save_webhook(declared, None, state.end, By("code"))
    await Desk(store, "ada").webhooks.save("crm", "https://crm.example", secret=SECRET)
    caller = Caller(name="eve", scope=Scope.OPERATE, source="desk")
    site = desk_site(store, caller=caller)
    async with AsyncClient(transport=ASGITransport(site), base_url="http://127.0.0.1") as pages:
        page = (await pages.get("/webhooks")).text
        assert "New webhook" not in page
        assert 'action="/webhooks/crm/delete"' not in page
        for path, data in (("/webhooks", HOOK), ("/webhooks/crm/delete", GO)):
            assert (await pages.post(path, data=data)).status_code == 403
        assert (await pages.post("/webhooks/crm/pause", data=GO)).status_code == 303
    async with AsyncClient(transport=ASGITransport(desk_site(store)), base_url="http://127.0.0.1") as pages:
        page = (await pages.get("/webhooks")).text
        assert 'action="/webhooks/crm/delete"' in page
        assert 'action="/webhooks/coded/delete"' not in page, "code would declare it again"
    assert len(await store.webhooks()) == 2
