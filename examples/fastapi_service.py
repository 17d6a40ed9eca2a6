"""A web service whose slow work is done by workflows.

The worker lives as long as the application, in its lifespan; more of them may run elsewhere, with
``lanner worker fastapi_service:ns``. Needs ``pip install fastapi uvicorn``; then, in this directory:

    LANNER_REDIS_URL=embedded uvicorn fastapi_service:app
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated

import anyio
from fastapi import FastAPI, HTTPException, Query
from pydantic import BaseModel, Field

from lanner import Context, JobFailedError, JobNotFoundError, WaitTimeoutError, WorkflowNamespace

ns = WorkflowNamespace("exports")


class Export(BaseModel):
    """What a client asks for. It is checked by FastAPI, and again when a worker takes the job."""

    table: str = Field(min_length=1)
    rows: int = Field(ge=1, le=1_000_000)


@dataclass(frozen=True)
class Answer:
    id: str
    state: str
    url: str | None = None
    error: str | None = None


@ns.workflow("export", max_attempts=3)
async def export(ctx: Context[Export]) -> str:
    """Write a table to a file that can be fetched."""
    file = await ctx.step.do("dump", dump, ctx.input.table, ctx.input.rows)
    return await ctx.step.do("publish", publish, file)


async def dump(table: str, rows: int) -> str:
    await anyio.sleep(0.01)
    return f"{table}-{rows}.csv"


async def publish(file: str) -> str:
    return f"https://files.example.org/{file}"


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
    async with ns, ns.worker(concurrency=20):
        yield


app = FastAPI(lifespan=lifespan)


@app.post("/exports", status_code=202)
async def create(wanted: Export) -> Answer:
    """Begin an export, and answer at once."""
    job = await export.run(wanted)
    return Answer(job.id, "accepted")


@app.get("/exports/{job_id}")
async def show(job_id: str, wait: Annotated[float, Query(ge=0, le=60)] = 0) -> Answer:
    """Where an export stands; with `wait`, its end if that comes within so many seconds."""
    job = export.get_job(job_id)
    try:
        return Answer(job_id, "completed", url=await job.wait(timeout=wait))
    except WaitTimeoutError:
        return Answer(job_id, await job.state())
    except JobFailedError as error:
        return Answer(job_id, "failed", error=error.message)
    except JobNotFoundError:
        raise HTTPException(404, f"there is no export {job_id}") from None
