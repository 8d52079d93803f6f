"""The login page and other pages outside the desk, in its style."""

from __future__ import annotations

from perdure.surfaces.access.login.page import LoginPage, LoginView
from perdure.surfaces.desk.frame import environment
from perdure.surfaces.desk.static_files import StaticFiles


def style_path() -> str:
    """The path of the style sheet, for small pages outside the desk."""
    return f"/static/{StaticFiles().url_name('desk.css')}"


def login_page() -> LoginPage:
    """A function that renders the login page; made once per site."""
    style = style_path()
    page = environment().get_template("pages/login.html")

    def render(view: LoginView) -> str:
        return page.render(view=view, style=f"{view.prefix}{style}")

    return render
