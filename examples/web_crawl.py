"""A crawl of a site, level by level: pages are fetched by children, so many at once; what was fetched is kept.

The crawl continues as new after each level. What it has to remember is its input, and nothing of the levels before, so
it can go on for as long as there are pages. The site here is made up.

    LANNER_REDIS_URL=embedded python examples/web_crawl.py
"""

import asyncio
import logging
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta

from lanner import Backoff, ChildFailedError, Context, ContinueAsNew, WorkflowNamespace

ns = WorkflowNamespace("crawls")

AT_ONCE = 4
PAGES = 60
fetched: Counter[str] = Counter()
running = {"now": 0, "most": 0}


@dataclass(frozen=True)
class Crawl:
    frontier: list[str]
    seen: list[str] = field(default_factory=list[str])
    broken: list[str] = field(default_factory=list[str])
    level: int = 0


@dataclass(frozen=True)
class Report:
    pages: int
    broken: list[str]
    levels: int


# a child's record stays as long as its parent may need it; that of a page is not worth it
@ns.workflow("page", max_attempts=3, backoff=Backoff(first=0.01), timeout=timedelta(seconds=30), result_ttl=0)
async def page(ctx: Context[str]) -> list[str]:
    """Fetch a page, and give the links on it."""
    return await ctx.step.do("fetch", fetch, ctx.input)


@ns.workflow("crawl", max_attempts=5)
async def crawl(ctx: Context[Crawl]) -> Report:
    """Fetch one level, and go on with the next."""
    done = ctx.input
    found = await ctx.step.map("pages", page, done.frontier, max_concurrency=AT_ONCE, on_failure="collect")
    broken = [url for url, links in zip(done.frontier, found, strict=True) if isinstance(links, ChildFailedError)]
    seen = sorted({*done.seen, *done.frontier})
    linked = {link for links in found if isinstance(links, list) for link in links}
    frontier = sorted(linked - set(seen))
    print(f"level {done.level}: {len(done.frontier)} pages")
    if not frontier:
        return Report(len(seen), [*done.broken, *broken], done.level + 1)
    raise ContinueAsNew(Crawl(frontier, seen, [*done.broken, *broken], done.level + 1))


async def fetch(url: str) -> list[str]:
    running["now"] += 1
    running["most"] = max(running["most"], running["now"])
    try:
        await asyncio.sleep(0.01)
        fetched[url] += 1
        number = int(url.removeprefix("/"))
        if number == PAGES // 2:
            raise LookupError(f"{url} is not there")
        return [f"/{link}" for link in (2 * number, 2 * number + 1) if link <= PAGES]
    finally:
        running["now"] -= 1


async def main() -> None:
    async with ns, ns.worker(concurrency=50):
        report = await crawl.execute(Crawl(["/1"]))
        print(f"{report.pages} pages on {report.levels} levels; broken: {', '.join(report.broken)}")
        print(f"fetched at once: {running['most']}")
        print(f"fetched more than once: {sorted(url for url, times in fetched.items() if times > 1)}")


if __name__ == "__main__":
    # what fails here is meant to: the log of its attempts would hide what is shown
    logging.getLogger("lanner.workflow").setLevel(logging.CRITICAL)
    asyncio.run(main())
