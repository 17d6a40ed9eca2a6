"""Which job is next: places, groups, priorities."""

from typing import Final

from .mutant import MODEL, REGRESSIONS, Mutation, lua

ORDER: Final = (
    Mutation(
        "a group's next job stands in line when one has ended",
        "lua/includes",
        (
            ("  lineUpGroup(base, workflow, spec.group)\n", "\n"),
            ("if n > 0 then redis.call('ZADD', keyOf(base, workflow, 'ready'), unpack(places)) end", ""),
        ),
        (MODEL,),
    ),
    lua(
        "a strict group is held",
        "apply_outcome",
        "local holds = goesOn and spec.strict and spec.group ~= ''",
        "local holds = false",
        "test_group_order.py::test_jobs_of_a_strict_group_never_interleave",
        MODEL,
    ),
    lua(
        "what goes on after an instant returns to its place",
        "promote_due",
        "tonumber(record[3] or nil)",
        "nil",
        "test_claim_order.py::test_a_job_that_slept_while_others_came_is_before_them",
        MODEL,
    ),
    lua(
        "what goes on after an event returns to its place",
        "wake_from_sleep",
        "tonumber(record[3] or nil)",
        "nil",
        "test_claim_order.py::test_a_job_that_slept_while_the_queue_was_empty_is_before_those_that_came_later",
        MODEL,
    ),
    lua(
        "a recovered job returns to its place",
        "recover_claim",
        "addWaiting(base, workflow, id, spec, place, holds)",
        "addWaiting(base, workflow, id, spec, nil, holds)",
        "test_claim_order.py::test_a_recovered_job_returns_to_its_place",
        MODEL,
    ),
    lua(
        "a retry goes to the back",
        "apply_outcome",
        "holds and 'started' or 'score'",
        "'started'",
        "test_claim_order.py::test_a_retry_goes_to_the_back",
        MODEL,
    ),
    lua(
        "priority decides first",
        "front_of",
        "(MAX_PRIORITY - priority) * BAND",
        "0",
        "test_claim_order.py::test_the_higher_priority_first_over_groups_and_without",
        MODEL,
    ),
    lua(
        "the order is counted from the start only when nothing sleeps",
        "rest_counter",
        "active, keyOf(base, workflow, 'delayed'), keyOf(base, workflow, 'parked')",
        "active",
        "test_claim_order.py::test_a_job_that_slept_while_the_queue_was_empty_is_before_those_that_came_later",
        MODEL,
    ),
    lua(
        "the order is counted from the start after a drain",
        "rest_counter",
        "redis.call('DEL', counter)",
        "",
        f"{REGRESSIONS}::test_after_a_drain_of_any_kind_the_order_is_counted_from_the_start",
        MODEL,
    ),
)
