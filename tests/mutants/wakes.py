"""Who is woken for what there is to do."""

from typing import Final

from .mutant import CAPS, MODEL, REGRESSIONS, SHORT_CUTS, Mutation, lua, script

WAKES: Final = (
    Mutation(
        "a new job wakes a worker",
        "lua/includes",
        (
            ("placeJob(base, workflow, id, spec)\n  armWake(base, workflow)", "placeJob(base, workflow, id, spec)"),
            ("  end\n  armWake(base, workflow)\nend", "  end\nend"),
            ("armWake(base, workflow)\n  writeReceipt(base, producer", "writeReceipt(base, producer"),
        ),
        (MODEL,),
    ),
    lua(
        "a new earliest instant is told",
        "add_delayed",
        "armClock(base, workflow)",
        "",
        "test_delays.py::test_an_idle_worker_wakes_by_itself_and_for_an_earlier_instant",
    ),
    lua(
        "a slot under the namespace cap wakes who was refused",
        "wake_capped",
        "armWake(base, refusal.workflow)",
        "",
        f"{CAPS}::test_under_the_namespace_cap_the_workflow_refused_longest_is_next",
    ),
    Mutation(
        "who leaves work behind wakes another",
        "lua/includes",
        (
            ("share > served then armWake(base, workflow) end", "share > served then end"),
            ("armWake(base, workflow)\n  elseif not entries[1] then", "elseif not entries[1] then"),
        ),
        (f"{SHORT_CUTS}::test_who_leaves_work_behind_wakes_another",),
    ),
    lua(
        "a removed job passes its slot on",
        "drop_job",
        "passOn(base, workflow, now)",
        "",
        f"{REGRESSIONS}::test_the_slot_of_a_job_whose_worker_is_gone_is_used_at_once_when_it_is_freed",
        MODEL,
    ),
    script(
        "a raised cap wakes",
        "set_limits",
        "armWake(base, name)",
        "",
        f"{CAPS}::test_a_raised_cap_wakes_as_many_workers_as_it_has_room_for",
    ),
    script(
        "a resumed queue wakes",
        "set_paused",
        "armWake(base, name)",
        "",
        "test_cancel.py::test_a_paused_namespace_starts_nothing_in_any_queue",
    ),
    Mutation(
        "a pop is told to end until it is known to have been told",
        "listener.py",
        (("await asyncio.sleep(pauses.next())\n            else:\n                return", "return"),),
        ("test_lost_answers.py::test_a_worker_hears_again_of_work_though_its_nudge_was_lost",),
    ),
    Mutation(
        "slots that are left to a claim behind a pop are looked for again",
        "settling.py",
        (
            ("if self._renews and outcomes else 0", "if self._renews else 0"),
            ("self._renews, self._looking = False, True", "self._renews = False"),
        ),
        ("test_claim_order.py::test_a_recovered_job_returns_to_its_place",),
    ),
    Mutation(
        "a worker that stops ends its pop",
        "worker.py",
        (("await self._listener.end_pop()\n", "pass\n"),),
        ("test_shutdown.py::test_a_wake_up_that_comes_during_the_grace_reaches_another",),
    ),
)
