"""The authorities system as a whole."""

from perdure import WorkerSettings
from perdure_systems.authorities.jobs import app, database
from perdure_systems.authorities.routes import API
from perdure_systems.authorities.settings import Authority, max_wait_of
from perdure_systems.authorities.web_pages import PAGES
from perdure_systems.kit.service import System


def checked_worker() -> WorkerSettings:
    """The app's own settings, once the variables that every order reads can be read."""
    for authority in Authority:
        max_wait_of(authority)
    return app.worker_settings


SYSTEM = System(
    name="authorities",
    title="Authorities",
    port=8105,
    apps=(app,),
    routes=[*PAGES, *API],
    databases=(database,),
    worker=checked_worker,
)
