"""A mail course for those who sign up: one lesson, days of waiting, the next lesson.

While a course waits it is a record in Redis: no process, no slot and no timer belongs to it, and every process may be
restarted meanwhile. Run it with a Redis at LANNER_REDIS_URL, or with none at all:

    LANNER_REDIS_URL=embedded python examples/mail_course.py
"""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

from lanner import Context, WorkflowNamespace

ns = WorkflowNamespace("courses")

LESSONS = ["what a namespace is", "what a step is", "what a wait is"]


@dataclass(frozen=True)
class Signup:
    email: str
    pause: timedelta = timedelta(days=2)


@ns.workflow("mail-course", max_attempts=10)
async def course(ctx: Context[Signup]) -> str:
    """Send the lessons until they are through, or until nobody reads them any more."""
    signup = ctx.input
    for number, lesson in enumerate(LESSONS, start=1):
        # the names of steps are of their own within a scope, so a loop can use the same ones again
        with ctx.step.scope(f"lesson {number}"):
            await ctx.step.do("send", send, signup.email, f"lesson {number}: {lesson}")
            await ctx.step.wait("let it be read", signup.pause)
            if not await ctx.step.do("ask whether it was read", was_read, signup.email, number):
                return f"{signup.email} gave up after lesson {number}"
    return f"{signup.email} knows it all"


async def send(email: str, text: str) -> None:
    print(f"to {email}: {text}")


async def was_read(email: str, lesson: int) -> bool:
    return email.startswith("ada") or lesson == 1


async def main() -> None:
    # in one process here; in production producers and workers are processes of their own
    async with ns, course.worker(concurrency=100):
        pause = timedelta(seconds=1.5)  # for want of days
        ada, bob = await course.run_many([Signup("ada@example.org", pause), Signup("bob@example.org", pause)])
        print(await bob.wait())
        print(await ada.wait())


if __name__ == "__main__":
    asyncio.run(main())
