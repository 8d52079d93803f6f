# mypy: disable-error-code="override"
# Each call gives its value here, and an answer to be awaited there: that is the point.
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Literal, ParamSpec, TypeVar, TypeVarTuple, overload

from perdure.domain.duration import Duration
from perdure.domain.flows.approval import Approval
from perdure.domain.flows.flow import OnEnd
from perdure.enqueue.calls import Call
from perdure.flows.families.family import ChildResult, Family
from perdure.policy.limits.gates import Breaker, Gate
from perdure.policy.retries.backoff import Backoff
from perdure.policy.retries.jitter import Jitter
from perdure.policy.retries.retry import RetrySource
from perdure.worker.attempt.context.context import Context

_P = ParamSpec("_P")
_Ts = TypeVarTuple("_Ts")
_T = TypeVar("_T")

class SyncContext(Context):
    @overload
    def step(self, name: str, function: Callable[_P, Awaitable[_T]], /, *args: _P.args, **kwargs: _P.kwargs) -> _T: ...
    @overload
    def step(self, name: str, function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T: ...
    @overload
    def step(
        self,
        name: str,
        function: Callable[[*_Ts], Awaitable[_T]],
        /,
        *args: *_Ts,
        optional: Literal[False] = False,
        retry: RetrySource | None = None,
        timeout: Duration | None = None,
        gates: Sequence[Gate] = (),
        breaker: Breaker | None = None,
    ) -> _T: ...
    @overload
    def step(
        self,
        name: str,
        function: Callable[[*_Ts], _T],
        /,
        *args: *_Ts,
        optional: Literal[False] = False,
        retry: RetrySource | None = None,
        gates: Sequence[Gate] = (),
        breaker: Breaker | None = None,
    ) -> _T: ...
    @overload
    def step(
        self,
        name: str,
        function: Callable[[*_Ts], Awaitable[_T]],
        /,
        *args: *_Ts,
        optional: bool,
        retry: RetrySource | None = None,
        timeout: Duration | None = None,
        gates: Sequence[Gate] = (),
        breaker: Breaker | None = None,
    ) -> _T | None: ...
    @overload
    def step(
        self,
        name: str,
        function: Callable[[*_Ts], _T],
        /,
        *args: *_Ts,
        optional: bool,
        retry: RetrySource | None = None,
        gates: Sequence[Gate] = (),
        breaker: Breaker | None = None,
    ) -> _T | None: ...
    def sleep(self, span: Duration) -> None: ...
    def spend(self, amount: float, budget: str | None = None) -> None: ...
    def once_per(self, period: Duration, *, key: str) -> bool: ...
    @overload
    def wait_for(self, event: str, timeout: Duration | None = None) -> Any: ...
    @overload
    def wait_for(self, event: str, timeout: Duration | None = None, *, as_type: type[_T]) -> _T: ...
    def approval(self, name: str, timeout: Duration | None = None) -> Approval: ...
    @overload
    def poll(
        self,
        name: str,
        function: Callable[[*_Ts], Awaitable[_T]],
        /,
        *args: *_Ts,
        every: Backoff = ...,
        jitter: Jitter = ...,
        within: Duration = ...,
        rest: Duration | None = None,
        deadline: Duration | datetime | None = None,
        then: Literal["round", "raise"] = "round",
    ) -> _T: ...
    @overload
    def poll(
        self,
        name: str,
        function: Callable[[*_Ts], _T],
        /,
        *args: *_Ts,
        every: Backoff = ...,
        jitter: Jitter = ...,
        within: Duration = ...,
        rest: Duration | None = None,
        deadline: Duration | datetime | None = None,
        then: Literal["round", "raise"] = "round",
    ) -> _T: ...
    def spawn(
        self, calls: Iterable[Call[_T]], *, name: str = "spawn", on_end: Literal["cancel", "keep"] | OnEnd = "cancel"
    ) -> Family[_T]: ...
    @overload
    def gather(
        self,
        calls: Iterable[Call[_T]] | Family[_T],
        *,
        failures: Literal["raise"] = "raise",
        quorum: int | None = None,
        within: Duration | None = None,
        name: str = "gather",
        on_end: Literal["cancel", "keep"] | OnEnd = "cancel",
    ) -> list[_T]: ...
    @overload
    def gather(
        self,
        calls: Iterable[Call[_T]] | Family[_T],
        *,
        failures: Literal["collect"],
        quorum: int | None = None,
        within: Duration | None = None,
        name: str = "gather",
        on_end: Literal["cancel", "keep"] | OnEnd = "cancel",
    ) -> list[ChildResult[_T]]: ...
    def wait_closing(self, timeout: Duration | None = None) -> bool: ...
