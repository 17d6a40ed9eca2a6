"""A report on many documents: each is summarised by a model, a person approves the draft, and it is published.

The summaries are children of the report: a document whose model call fails is tried again by itself, no more calls run
at once than the provider allows, and a summary that is there is not paid for again, whatever crashes. The model here is
a stand-in.

    LANNER_REDIS_URL=embedded python examples/ai_pipeline.py
"""

import asyncio
import logging
from dataclasses import dataclass

from lanner import Backoff, ChildFailedError, Context, NonRetryableError, WorkflowNamespace

ns = WorkflowNamespace("reports")

AT_ONCE = 3
calls = {"running": 0, "most": 0, "made": 0}
tried: set[str] = set()
inbox: asyncio.Queue[str] = asyncio.Queue()  # the editor's


@dataclass(frozen=True)
class Question:
    topic: str
    documents: list[str]


@dataclass(frozen=True)
class Verdict:
    by: str
    text: str
    approved: bool


@ns.workflow("summary", max_attempts=4, backoff=Backoff(first=0.01))
async def summary(ctx: Context[str]) -> str:
    """Have one document summarised."""
    return await ctx.step.do("ask the model", ask_model, ctx.input)


@ns.workflow("report", max_attempts=3)
async def report(ctx: Context[Question]) -> str:
    """Summarise, draft, have it approved, and publish; with remarks a draft is written again."""
    topic, documents = ctx.input.topic, ctx.input.documents
    found = await ctx.step.map(
        "summaries",
        summary,
        documents,
        max_concurrency=AT_ONCE,
        on_failure="collect",
        min_successful=len(documents) // 2,
    )
    summaries = [each for each in found if isinstance(each, str)]
    missing = [name for name, each in zip(documents, found, strict=True) if isinstance(each, ChildFailedError)]
    remarks: list[str] = []
    while True:
        with ctx.step.scope(f"draft {len(remarks) + 1}"):
            draft = await ctx.step.do("write", write, topic, summaries, missing, remarks)
            await ctx.step.do("show", show, ctx.job_id, draft)
            verdict = await ctx.step.wait_for_event("verdict", type=Verdict)
        if verdict.approved:
            return await ctx.step.do("publish", publish, draft)
        remarks.append(verdict.text)


async def ask_model(document: str) -> str:
    calls["made"] += 1
    calls["running"] += 1
    calls["most"] = max(calls["most"], calls["running"])
    try:
        await asyncio.sleep(0.02)
        if document == "a photo":
            raise NonRetryableError("this model cannot see")
        if document not in tried and document.endswith("7"):
            tried.add(document)
            raise ConnectionError("the model is overloaded")
        return f"what {document} says"
    finally:
        calls["running"] -= 1


async def write(topic: str, summaries: list[str], missing: list[str], remarks: list[str]) -> str:
    return f"{topic}: {len(summaries)} sources, without {', '.join(missing)}{''.join(f'; {each}' for each in remarks)}"


async def show(job_id: str, draft: str) -> None:
    print(f"to the editor, about {job_id}: {draft}")
    inbox.put_nowait(job_id)


async def publish(draft: str) -> str:
    print(f"published: {draft}")
    return draft


async def main() -> None:
    documents = [*(f"page {number}" for number in range(1, 20)), "a photo"]
    async with ns, ns.worker(concurrency=20):
        job = await report.run(Question("whales", documents), id="whales")
        about = await inbox.get()
        tree = await job.tree()
        print(f"{tree.completed} of {tree.size} summaries, {tree.count('failed')} failed")
        print(f"model calls at once: {calls['most']}")

        # the editor answers from somewhere else, knowing nothing but the id
        await report.get_job(about).send_event("verdict", Verdict("grace", "mention the photo", approved=False))
        await report.get_job(await inbox.get()).send_event("verdict", Verdict("grace", "", approved=True))
        await job.wait()
        print(f"model calls in all: {calls['made']}")


if __name__ == "__main__":
    # what fails here is meant to: the log of its attempts would hide what is shown
    logging.getLogger("lanner.workflow").setLevel(logging.CRITICAL)
    asyncio.run(main())
