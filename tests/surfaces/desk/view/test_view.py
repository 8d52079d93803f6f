"""Values as people read them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest

from perdure.domain.operate.audit import AuditEntry
from perdure.surfaces.desk.view.changes import account_of
from perdure.surfaces.desk.view.documents import as_document, document
from perdure.surfaces.desk.view.numbers import number, rate, share, short_number, short_span, size, span
from perdure.surfaces.desk.view.text import plain, visible
from perdure.surfaces.desk.view.times import ago, full, moment, sentence
from perdure.surfaces.desk.view.tracebacks import traceback

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0, "0"), (418, "418"), (1_204, "1,204"), (31_250, "31 k"), (1_240_000, "1.2 M"), (3e9, "3 G"), (None, "\u2013")],
)
def test_numbers_are_rounded_for_reading(value: float | None, shown: str) -> None:
    assert short_number(value) == shown


def test_a_rounded_number_has_the_exact_one_in_its_tooltip() -> None:
    assert number(1_240_000) == '<span title="1,240,000">1.2 M</span>'
    assert number(418) == "418"
    assert number(10_000, capped=True) == '<span title="at least 10,000">10 k+</span>'


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0, "0 s"),
        (0.0004, "< 1 ms"),
        (0.064, "64 ms"),
        (2.13, "2.1 s"),
        (30, "30 s"),
        (95, "1 m 35 s"),
        (1_500, "25 m"),
        (12_000, "3 h 20 m"),
        (187_200, "2 d 4 h"),
        (-5, "-5 s"),
    ],
)
def test_spans_have_two_units_at_most(seconds: float, shown: str) -> None:
    assert short_span(seconds) == shown
    assert short_span(timedelta(seconds=seconds)) == shown
    assert span(seconds) == f'<span title="{seconds:,.3f} s">{shown.replace("<", "&lt;")}</span>'


def test_rates_shares_and_sizes() -> None:
    assert [rate(0, 60), rate(49_440, 60), rate(150, 60), rate(4, 60), rate(3, 3_600)] == [
        "0 /s",
        "824 /s",
        "2.5 /s",
        "4 /min",
        "3 /h",
    ]
    assert [share(None), share(0.0), share(0.0004), share(0.019), share(0.31)] == [
        "\u2013",
        "0 %",
        "< 0.1 %",
        "1.9 %",
        "31 %",
    ]
    assert [size(412), size(16_384), size(1_200_000)] == ["412 B", "16 KB", "1.2 MB"]


def test_a_time_within_a_sentence_is_one_for_the_script_too() -> None:
    shown = sentence("held until 2026-03-04 12:05:00Z <b>, not 2026-03-04", NOON)
    assert shown.startswith(f"held until {moment(NOON + timedelta(minutes=5), NOON)} &lt;b&gt;")
    assert shown.endswith(", not 2026-03-04")
    for written in ("2026-03-04T12:05:00+00:00", "2026-03-04T12:05:00.25Z", "2026-03-04 13:05:00+01:00"):
        assert ">12:05:00 UTC</time>" in sentence(f"at {written}", NOON)
    for text in ("2026-13-41 25:61:00Z", "2026-03-04 12:05", "x2026-03-04 12:05:00Z\u202e", "0001-01-01 00:00+23:59"):
        assert "<time" not in sentence(text, NOON)


def test_a_span_within_a_sentence_has_the_form_of_the_rest_of_the_desk() -> None:
    shown = sentence("its last heartbeat was 1h51m ago (of 250ms), then 9m; in <b> 2d.", NOON)
    assert shown == (
        f"its last heartbeat was {span(6_660)} ago (of {span(0.25)}), then {span(540)}; in &lt;b&gt; {span(172_800)}."
    )
    for text in ("queue sync-5m", "host 5m.example", "'5m'", "m5m", "1h5", "5m1h", "99999999d", "5m…"):
        assert "<span title" not in sentence(text, NOON)


def test_the_frames_of_libraries_are_paler_and_nothing_is_left_out() -> None:
    text = """Traceback (most recent call last):
  File "/app/jobs.py", line 3, in charge
    pay(<order>)
  File "/venv/lib/python3.12/site-packages/httpx/client.py", line 9, in post
    return self.send()
           ^^^^^^^^^^^
  File "/app/\u202epay.py", line 1, in pay
    raise ValueError
ValueError: no
"""
    shown = traceback(text)
    [library] = re.findall(r'<span class="library">(.*?)</span>', shown, re.DOTALL)
    assert library.startswith("  File &#34;/venv/lib")
    assert library.endswith("^\n")
    assert "pay(&lt;order&gt;)" in shown
    assert "U+202E" in shown
    assert str(shown).replace(f'<span class="library">{library}</span>', library) == visible(text)
    assert traceback("x" * 30_000).endswith("…")
    assert traceback("") == ""


def test_the_details_of_an_audit_entry_are_told_in_words() -> None:
    details = {
        "rule": "slow",
        "keep": 259_200.0,
        "after": {"lasting": "P0D", "throttle": "PT600S", "said": "P", "at": "PT5M"},
    }
    account = account_of(AuditEntry(id=1, at=NOON, actor="ada", action="alert_rule.save", job_id=None, details=details))
    assert account.facts == (("rule", "slow"), ("keep", "3 d"))
    assert [(one.name, one.after) for one in account.changes] == [
        ("lasting", "0 s"),
        ("throttle", "10 m"),
        ("said", "P"),
        ("at", "PT5M"),
    ]


def test_times_are_utc_with_the_instant_for_the_script() -> None:
    assert moment(NOON, NOON) == (
        '<time datetime="2026-03-04T12:00:00+00:00" data-as="clock" title="2026-03-04 12:00:00 UTC">12:00:00 UTC</time>'
    )
    assert "2026-03-01 12:00 UTC</time>" in moment(NOON - timedelta(days=3), NOON)
    assert "2026-03-04 12:00:00 UTC</time>" in full(NOON)
    assert ">3 m ago</time>" in ago(NOON - timedelta(minutes=3), NOON)
    assert ">in 20 s</time>" in ago(NOON + timedelta(seconds=20), NOON)
    assert ">now</time>" in ago(NOON, NOON)
    assert moment(None, NOON) == ago(None, NOON) == full(None) == "\u2013"


def test_hostile_text_is_escaped_and_nothing_in_it_hides() -> None:
    shown = visible("<b>\u202egpj.exe\u0007\u200b\n")
    assert "<b>" not in shown
    assert "&lt;b&gt;" in shown
    assert 'title="U+202E right-to-left override">\\u202e</span>' in shown
    assert 'title="U+0007 control character">\\x07</span>' in shown
    assert "\\u200b</span>" in shown
    assert not {"\u202e", "\u0007", "\u200b"} & set(shown)
    assert plain("a\u202eb\x1b[31m") == "a\\u202eb\\x1b[31m"
    assert plain("👩\u200d🔬 naïve\n") == "👩\u200d🔬 naïve\n"
    assert visible("x" * 3_000, 10) == "x" * 9 + "…"


def test_json_is_shown_as_text_with_its_size_and_cut_where_it_is_long() -> None:
    short = document('{"a":[1,2]}')
    assert short is not None
    assert (short.text, short.size, short.cut, short.is_long) == (
        '{\n  "a": [\n    1,\n    2\n  ]\n}',
        11,
        False,
        False,
    )
    long = as_document(list(range(5_000)))
    assert long is not None
    assert long.cut
    assert long.is_long
    assert len(long.text.split("\n")) <= 400
    broken = document("{oops")
    assert broken is not None
    assert broken.text == "{oops"
    assert document(None) is None
    deep = document("[" * 5_000 + "]" * 5_000)
    assert deep is not None
    assert deep.text.startswith("[[[")
