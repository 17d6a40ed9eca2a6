"""What public calls are given and cannot use: an error names the argument before anything is sent."""

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from lanner import SyncContext, WorkflowNamespace
from lanner.errors import InvalidArgumentError
from lanner.queue import Claim, Namespace, Queue, Worker
from lanner.workflow.options import RunOptions
from lanner.workflow.worker import WorkerSettings
from support.jobs import Look


async def handle(_: Claim) -> None:
    raise AssertionError("nothing is to run")


NAN = float("nan")

NAMESPACES: dict[str, tuple[dict[str, Any], str]] = {
    "no id": ({"id": ""}, "namespace id"),
    "an id with a colon": ({"id": "a:b"}, "namespace id"),
    "an id with a brace": ({"id": "a}"}, "namespace id"),
    "an id that is no text": ({"id": 5}, "namespace id"),
    "an id with a line break at its end": ({"id": "a\n"}, "namespace id"),
    "a prefix with a brace": ({"prefix": "{p}"}, "prefix"),
    "no producer timeout": ({"producer_timeout": 0}, "producer_timeout"),
    "an endless producer timeout": ({"producer_timeout": float("inf")}, "producer_timeout"),
    "a default that does not exist": ({"defaults": {"retries": 3}}, "retries"),
    "a default that cannot be used": ({"defaults": {"max_attempts": 0}}, "max_attempts"),
    "a limiter that is none": ({"limiters": {"api": 5}}, "limiter 'api'"),
    "limiters without names": ({"limiters": ["api"]}, "limiters must be a dict"),
    "defaults that are none": ({"defaults": 5}, "defaults must be a dict"),
}


@pytest.mark.parametrize(("arguments", "named"), NAMESPACES.values(), ids=NAMESPACES)
def test_a_namespace_that_cannot_be(arguments: dict[str, Any], named: str) -> None:
    given: dict[str, Any] = {"id": "n", "redis": "redis://localhost", **arguments}
    with pytest.raises(InvalidArgumentError, match=named):
        Namespace(given.pop("id"), **given)


QUEUES: dict[str, tuple[dict[str, Any], str]] = {
    "no id": ({"id": ""}, "workflow id"),
    "an id with a blank": ({"id": "a b"}, "workflow id"),
    "a default that does not exist": ({"retry": 3}, "retry"),
    "a default that cannot be used": ({"priority": -1}, "priority"),
    "limiters that nobody knows": ({"limiters": ["api"]}, "limiter 'api'"),
    "limiters that are a text": ({"limiters": "api"}, "limiters"),
    "a negative number of events": ({"events": -1}, "events"),
}


@pytest.mark.parametrize(("arguments", "named"), QUEUES.values(), ids=QUEUES)
def test_a_queue_that_cannot_be(arguments: dict[str, Any], named: str) -> None:
    given: dict[str, Any] = {"id": "q", **arguments}
    with pytest.raises(InvalidArgumentError, match=named):
        Namespace("n", redis="redis://localhost").queue(given.pop("id"), **given)


WORKERS: dict[str, tuple[dict[str, Any], str]] = {
    "no slots": ({"concurrency": 0}, "concurrency"),
    "slots that are a float": ({"concurrency": 2.0}, "concurrency"),
    "slots beyond reason": ({"concurrency": 10**6}, "concurrency"),
    "a lease of nothing": ({"lease": 0}, "lease"),
    "a lease that is too short to be renewed": ({"lease": 0.01}, "lease"),
    "a lease of NaN": ({"lease": NAN}, "lease"),
    "a negative grace": ({"grace": timedelta(seconds=-1)}, "grace"),
    "a loop that may not be blocked": ({"max_blocked": 0}, "max_blocked"),
    "a warning of nothing": ({"warn_blocked": 0}, "warn_blocked"),
    "no safety": ({"safety": 0}, "safety"),
    "a ceiling of nothing": ({"ceilings": {"q": 0}}, "concurrency"),
    "a ceiling of a queue that it does not work on": ({"ceilings": {"other": 1}}, "other"),
    "no queue": ({"handlers": {}}, "handlers"),
    "a queue that cannot be": ({"handlers": {"a:b": handle}}, "workflow id"),
    "a handler that cannot be called": ({"handlers": {"q": "handle"}}, "handler"),
    "an on_blocked that cannot be called": ({"on_blocked": 5}, "on_blocked"),
    "an on_error that cannot be called": ({"on_error": "print"}, "on_error"),
}


@pytest.mark.parametrize(("arguments", "named"), WORKERS.values(), ids=WORKERS)
def test_a_worker_that_cannot_be(arguments: dict[str, Any], named: str) -> None:
    given: dict[str, Any] = {"handlers": {"q": handle}, **arguments}
    with pytest.raises(InvalidArgumentError, match=named):
        Worker(Namespace("n", redis="redis://localhost"), **given)


@pytest.fixture
async def queue(namespace: Namespace, look: Look) -> AsyncIterator[Queue]:
    """A queue that nothing may be sent to."""
    yield namespace.queue("q")
    assert look.names() == []


CALLS: dict[str, tuple[Callable[[Queue], Awaitable[Any]], str]] = {
    "a handle of no id": (lambda queue: queue.job("").record(), "job id"),
    "retry of no id": (lambda queue: queue.retry(""), "job id"),
    "remove of an int": (lambda queue: queue.remove(5), "job id"),  # type: ignore[arg-type] # what is refused
    "promote of a long id": (lambda queue: queue.promote("x" * 257), "job id"),
    "a step of no text": (lambda queue: queue.get_step("a", 5), "step name"),  # type: ignore[arg-type] # same
    "a step's text of no text": (lambda queue: queue.set_step("a", "s", 5, token="t"), "step text"),  # type: ignore[arg-type]  # noqa: S106 - of what is refused
    "a wait of less than nothing": (lambda queue: queue.job("a").wait(-1), "timeout"),
    "a wait of NaN": (lambda queue: queue.job("a").wait(NAN), "timeout"),
    "a wait of a bool": (lambda queue: queue.job("a").wait(timeout=True), "timeout"),
    "an event of no name": (lambda queue: queue.job("a").send_event("", "x", event_id="1"), "event name"),
    "an event with a line break": (lambda queue: queue.job("a").send_event("a\nb", "x", event_id="1"), "event name"),
    "an event without an id": (lambda queue: queue.job("a").send_event("e", "x", event_id=""), "event_id"),
    "an event's text of no text": (lambda queue: queue.job("a").send_event("e", 5, event_id="1"), "event text"),  # type: ignore[arg-type] # same
    "a reason of no text": (lambda queue: queue.job("a").cancel(5), "reason"),  # type: ignore[arg-type] # same
    "a state that there is not": (lambda queue: queue.list_jobs("running"), "state"),  # type: ignore[arg-type] # same
    "a page of nothing": (lambda queue: queue.list_jobs("waiting", limit=0), "limit"),
    "a page before the first": (lambda queue: queue.list_jobs("waiting", skip=-1), "skip"),
    "a group of no name": (lambda queue: queue.list_group(""), "group"),
    "removing what there is not": (lambda queue: queue.remove_all("done"), "state"),  # type: ignore[arg-type] # same
    "removing by a negative age": (lambda queue: queue.remove_all("failed", older_than=-1), "older_than"),
    "many of no text": (lambda queue: queue.add_many(["x", 5]), "data"),  # type: ignore[list-item] # same
    "one text in place of many": (lambda queue: queue.add_many("abc"), "list of texts"),
    "a schedule of no id": (lambda queue: queue.schedules.get(""), "schedule id"),
    "removing a schedule of an int": (lambda queue: queue.schedules.remove(5), "schedule id"),  # type: ignore[arg-type] # same
    "pausing a schedule of no id": (lambda queue: queue.schedules.pause(""), "schedule id"),
    "resuming a schedule of no id": (lambda queue: queue.schedules.resume("a\nb"), "schedule id"),
    "triggering a schedule of no id": (lambda queue: queue.schedules.trigger(""), "schedule id"),
    "many with an unknown option": (lambda queue: queue.add_many(["x"], tries=5), "tries"),  # type: ignore[call-arg] # pyright: ignore[reportCallIssue, reportUnknownLambdaType] - same
}


@pytest.mark.parametrize(("call", "named"), CALLS.values(), ids=CALLS)
async def test_a_call_that_cannot_be_made(queue: Queue, call: Callable[[Queue], Awaitable[Any]], named: str) -> None:
    with pytest.raises(InvalidArgumentError, match=named):
        await call(queue)


async def _yields(ctx: object) -> AsyncIterator[object]:
    yield ctx


def _takes_none() -> None: ...


def _takes_a_context(ctx: SyncContext[None]) -> None: ...


def _takes_two(ctx: object, more: object) -> None:
    del ctx, more


FUNCTIONS: dict[str, tuple[Any, str]] = {
    "no function": (5, "run= must be a function"),
    "a generator": (_yields, "must not yield"),
    "a function without a context": (_takes_none, "of one argument, the context"),
    "a function of two arguments": (_takes_two, "of one argument, the context"),
}


@pytest.mark.parametrize(("function", "named"), FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_workflow_that_cannot_be(function: Any, named: str) -> None:
    with pytest.raises(InvalidArgumentError, match=named):
        WorkflowNamespace("n", redis="redis://localhost").create_workflow("w", run=function)


def _named(function: Callable[..., object]) -> list[str]:
    """What a function takes by name only, besides its options."""
    parameters = inspect.signature(function).parameters.values()
    return [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]


@pytest.mark.parametrize("name", _named(WorkflowNamespace.__init__))
def test_a_misspelt_argument_of_a_namespace_is_told(name: str) -> None:
    misspelt: dict[str, Any] = {f"{name}_": 5}
    with pytest.raises(InvalidArgumentError, match=rf"no option '{name}_'; did you mean '{name}'"):
        WorkflowNamespace("n", **misspelt)


@pytest.mark.parametrize("name", _named(WorkflowNamespace.workflow))
def test_a_misspelt_argument_of_a_workflow_is_told(name: str) -> None:
    misspelt: dict[str, Any] = {f"{name}_": 5}
    with pytest.raises(InvalidArgumentError, match=rf"no option '{name}_'; did you mean '{name}'"):
        WorkflowNamespace("n", redis="redis://localhost").create_workflow("w", run=_takes_a_context, **misspelt)


@pytest.mark.parametrize("name", sorted(RunOptions.__optional_keys__))
async def test_a_misspelt_option_of_a_job_is_told(name: str) -> None:
    workflow: Any = WorkflowNamespace("n", redis="redis://localhost").create_workflow("w", run=_takes_a_context)
    with pytest.raises(InvalidArgumentError, match=rf"no option '{name}_'; did you mean '{name}'"):
        await workflow.run(None, **{f"{name}_": 5})


@pytest.mark.parametrize("name", ["concurrency", *sorted(WorkerSettings.__optional_keys__)])
def test_a_misspelt_setting_of_a_worker_is_told(name: str) -> None:
    namespace: Any = WorkflowNamespace("n", redis="redis://localhost")
    workflow = namespace.create_workflow("w", run=_takes_a_context)
    for whose in (namespace, workflow):
        with pytest.raises(InvalidArgumentError, match=rf"no option '{name}_'; did you mean '{name}'"):
            whose.worker(**{f"{name}_": 5})


def test_a_decorator_without_an_id() -> None:
    namespace: Any = WorkflowNamespace("n", redis="redis://localhost")
    with pytest.raises(InvalidArgumentError, match=r"write @ns\.workflow"):
        namespace.workflow(_takes_none)
