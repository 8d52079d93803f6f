"""The jobs that a test expects to be enqueued, and the message when they are not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from perdure.domain.duration import format_duration
from perdure.enqueue.job import Prepared
from perdure.errors import ArgumentError
from perdure.kinds.encoding import encode
from perdure.kinds.options import Options
from perdure.kinds.signature import Signature
from perdure.policy.own_settings import settings_text
from perdure.testing.enqueued import Enqueued

_LINES_SHOWN = 20


class Expectation:
    """A job, some of its arguments, and some of its options, as `using` takes them; omitted ones match anything.

    Arguments are compared with `==`, so that `unittest.mock.ANY` and `pytest.approx` work, and otherwise by their
    stored JSON. An argument that the handler does not have is refused: it could never match, and `assert_not_enqueued`
    would always pass.
    """

    def __init__(self, job: Prepared[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._kind = job.kind.name
        self._options = job.options
        if self._options.unique is not None or self._options.connection is not None:
            raise ArgumentError("unique or connection", "cannot be expected: leave it out")
        self._arguments = _by_name(job.kind.signature, self._kind, args, kwargs)

    def differences(self, one: Enqueued) -> list[str]:
        """How this job differs from the expectation; empty if it matches."""
        wrong = [f"{name}={one.arguments.get(name)!r}" for name in self._arguments if not self._holds(name, one)]
        options = self._options
        if options.queue not in {None, one.queue}:
            wrong.append(f"queue={one.queue!r}")
        if options.priority not in {None, one.priority}:
            wrong.append(f"priority={one.priority}")
        if options.delay not in {None, one.delay}:
            wrong.append(f"delay={format_duration(one.delay)!r}")
        if options.run_at not in {None, one.due_at}:
            wrong.append(f"run_at={one.due_at}")
        if options.id not in {None, one.id}:
            wrong.append(f"id={one.id!r}")
        if not {*options.tags} <= {*one.tags}:
            wrong.append(f"tags={list(one.tags)}")
        if not _expected_meta(options).items() <= one.meta.items():
            wrong.append(f"meta={one.meta}")
        return wrong + self._other_settings(one)

    def _other_settings(self, one: Enqueued) -> list[str]:
        """Settings of this job alone that differ from the expectation."""
        options = self._options
        wrong = [
            f"{name}={getattr(one, name)!r}"
            for name in ("timeout", "crash_limit", "ref")
            if getattr(options, name) not in {None, getattr(one, name)}
        ]
        # Compared as stored: error types are names there.
        if options.retry is not None and settings_text(options.retry, None) != settings_text(one.retry, None):
            wrong.append(f"retry={one.retry}")
        return wrong

    def matches(self, all_of_them: Iterable[Enqueued]) -> list[Enqueued]:
        """The matching jobs, in the order in which they were enqueued."""
        return [one for one in all_of_them if one.kind == self._kind and not self.differences(one)]

    def report(self, should: str, found: int, all_of_them: Iterable[Enqueued]) -> str:
        """The expectation and what was enqueued instead; jobs of the same kind first, with their differences."""
        everything = list(all_of_them)
        lines = [f"{self} should {should}, and was {_times(found)}"]
        same = [one for one in everything if one.kind == self._kind]
        others = [one for one in everything if one.kind != self._kind]
        if not everything:
            lines.append("nothing was enqueued")
        if same:
            lines.append(f"{self._kind} was enqueued as:")
            lines += _cut([f"  {one}{_apart(self.differences(one))}" for one in same])
        if others:
            lines.append("besides:" if same else f"{self._kind} was never enqueued, only:")
            lines += _cut([f"  {one}" for one in others])
        return "\n".join(lines)

    def __str__(self) -> str:
        """The expected call as text."""
        options = self._options
        said = {
            "queue": options.queue,
            "priority": options.priority,
            "delay": None if options.delay is None else format_duration(options.delay),
            "run_at": options.run_at,
            "id": options.id,
            "tags": list(options.tags) or None,
            "meta": _expected_meta(options) or None,
            "retry": options.retry,
            "timeout": None if options.timeout is None else format_duration(options.timeout),
            "crash_limit": options.crash_limit,
            "ref": options.ref,
        }
        using = ", ".join(f"{name}={value!r}" for name, value in said.items() if value is not None)
        arguments = ", ".join(f"{name}={value!r}" for name, value in self._arguments.items())
        return f"{self._kind}{f'.using({using})' if using else ''}({arguments})"

    def _holds(self, name: str, one: Enqueued) -> bool:
        expected = self._arguments[name]
        if name in one.arguments and bool(expected == one.arguments[name]):
            return True
        try:
            return name in one.plain and bool(msgspec.json.decode(encode(expected)) == one.plain[name])
        except (TypeError, ValueError, NotImplementedError):
            return False


def _by_name(signature: Signature, kind: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    if len(args) > len(signature.names):
        raise ArgumentError("arguments", f"of {kind}: takes {len(signature.names)}, expected are {len(args)}")
    by_name = dict(zip(signature.names, args, strict=False))
    for name, value in kwargs.items():
        if name not in signature.names:
            raise ArgumentError(f"argument {name}", f"is not one of {kind}({', '.join(signature.names)})")
        if name in by_name:
            raise ArgumentError(f"argument {name}", f"of {kind} is expected twice")
        by_name[name] = value
    return by_name


def _expected_meta(options: Options) -> dict[str, Any]:
    return msgspec.json.decode(options.meta, type=dict[str, Any]) if options.meta else {}


def _times(count: int) -> str:
    return {0: "not", 1: "once"}.get(count, f"{count} times")


def _apart(differences: list[str]) -> str:
    return f"  <- {', '.join(differences)}" if differences else ""


def _cut(lines: list[str]) -> list[str]:
    return lines if len(lines) <= _LINES_SHOWN else [*lines[:_LINES_SHOWN], f"  … and {len(lines) - _LINES_SHOWN} more"]
