"""Pages lead to the desk: to all jobs of their system, and from an id to its job."""

from __future__ import annotations

from pathlib import Path

from perdure_systems.kit.pages import Pages, on_desk


def test_every_page_leads_to_the_jobs_of_its_system_on_the_desk(tmp_path: Path) -> None:
    (tmp_path / "one.html").write_text('{% extends "base.html" %}{% block main %}{{ id | on_desk }}{% endblock %}')
    pages = Pages("Mail", tmp_path, (), jobs="queue:mail & more")
    body = bytes(pages.render("one.html", here="/", id="0197").body).decode()
    assert 'href="/desk/jobs?q=queue%3Amail%20%26%20more"' in body
    assert 'href="/desk/jobs/0197"' in body


def test_a_reference_leads_to_a_search_and_is_escaped() -> None:
    assert 'href="/desk/jobs?q=ref%3Aorder-7"' in on_desk("order-7", "ref")
    assert "<b>" not in on_desk("<b>")
