"""Where spans come from: nowhere in a program that has set no provider, and at no cost."""

import subprocess
import sys
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import SpanKind

from lanner import Context, JobFailedError, WorkflowNamespace
from support.commands import ENDS_WITHIN
from support.servers import Server

PROGRAM = """
import asyncio, sys
{before}
from lanner import Context, WorkflowNamespace

async def run(ctx: Context[int]) -> int:
    ctx.span.set_attribute("a", 1)
    return await ctx.step.do("double", lambda: ctx.input * 2)

async def main(url: str, name: str) -> None:
    async with WorkflowNamespace(name, redis=url) as namespace:
        workflow = namespace.create_workflow("flow", run=run)
        async with workflow.worker():
            assert await workflow.execute(21, timeout=30) == 42
    {after}

asyncio.run(main(*sys.argv[1:]))
"""


def ran(server: Server, namespace_id: str, before: str, after: str) -> str:
    """What a program prints that has a workflow run."""
    program = PROGRAM.format(before=before, after=after)
    command = [sys.executable, "-W", "error", "-c", program, server.url, namespace_id]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=ENDS_WITHIN)
    assert done.returncode == 0, done.stderr
    return done.stdout


UNUSED = 'assert "lanner.workflow.tracing" not in sys.modules and "lanner.workflow.metrics" not in sys.modules'


def test_a_program_without_telemetry_loads_none_of_it(server: Server, namespace_id: str) -> None:
    ran(server, namespace_id, "", UNUSED)


def test_a_program_runs_where_the_api_is_not_installed(server: Server, namespace_id: str) -> None:
    after = """
    try:
        namespace.metrics()
    except Exception as error:
        print(type(error).__name__, error)
    """
    said = ran(server, namespace_id, 'sys.modules["opentelemetry"] = None', after)
    assert said.startswith("InvalidArgumentError metrics need OpenTelemetry: pip install 'lanner[otel]'")


def test_a_program_that_has_set_no_provider_makes_no_spans(server: Server, namespace_id: str) -> None:
    before = "from opentelemetry import metrics, trace"
    ran(server, namespace_id, before, UNUSED)


def test_a_provider_that_the_process_has_set_is_used(server: Server, namespace_id: str) -> None:
    before = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
"""
    after = "print(*sorted(span.name for span in exporter.get_finished_spans()), sep=', ')"
    assert ran(server, namespace_id, before, after) == "process flow, send flow, step double\n"


class Broken(Sampler):
    """It breaks down over the spans of consumers."""

    def should_sample(self, *about: Any, **more: Any) -> SamplingResult:
        if SpanKind.CONSUMER in (*about, *more.values()):
            raise ZeroDivisionError("a mistake of the sampler's")
        return SamplingResult(Decision.RECORD_AND_SAMPLE)

    def get_description(self) -> str:
        return "broken"


async def test_a_sampler_that_raises_fails_the_attempt_and_frees_its_slot(server: Server, namespace_id: str) -> None:
    async def echo(ctx: Context[str]) -> str:
        return ctx.input

    provider = TracerProvider(sampler=Broken())
    async with WorkflowNamespace(namespace_id, redis=server.url, tracer_provider=provider) as namespace:
        workflow = namespace.create_workflow("flow", run=echo)
        async with workflow.worker(concurrency=1):
            for _ in range(2):
                with pytest.raises(JobFailedError, match="a mistake of the sampler's"):
                    await workflow.execute("x", timeout=30)
