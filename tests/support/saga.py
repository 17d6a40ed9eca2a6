"""A saga whose worker processes die at every point of it: three bookings, a failure, and what undoes them."""

from lanner import Context, Workflow, WorkflowNamespace
from lanner.queue.recording import Recorder
from support.family import die_once, note

BOOKINGS = ("flight", "hotel", "car")


def book(what: str) -> None:
    """A step's effect."""
    note(f"booked {what}")
    die_once(f"{what} is booked")


def cancel(what: str) -> None:
    """What undoes it."""
    die_once(f"{what} is about to be undone")
    note(f"undid {what}")


def define(ns: WorkflowNamespace) -> Workflow[str, None]:
    """It fails when everything is booked, or waits there until it is cancelled."""

    async def trip(ctx: Context[str]) -> None:
        for what in BOOKINGS:
            ctx.on_failure(what, cancel, what)
            die_once(f"{what} is registered")
            await ctx.step.do(f"book {what}", book, what)
        if ctx.input == "waits":
            await ctx.step.wait_for_event("go on")
        die_once("it is about to fail")
        raise ValueError("no seats")

    return ns.create_workflow("trip", run=trip, max_stalled=5)


def define_to_die(ns: WorkflowNamespace) -> None:
    """As ``define``; and a worker dies when it has stored what was undone."""
    record = Recorder.record

    async def recorded(self: Recorder, *arguments: object) -> bool:
        stored = await record(self, *arguments)  # type: ignore[arg-type] # what it was given
        if str(arguments[1]).startswith("//undo/"):
            die_once(f"{arguments[1]} is stored")
        return stored

    Recorder.record = recorded  # type: ignore[assignment, method-assign] # of a process that does nothing else
    define(ns)
