"""What bounds what may start: caps, pauses, rate limits."""

from typing import Final

from .mutant import CAPS, FILLED, MODEL, REGRESSIONS, Mutation, lua

NESTED: Final = f"{CAPS}::test_no_cap_is_exceeded_where_all_of_them_hold"

LIMITS: Final = (
    Mutation(
        "a worker claims no more than its slots",
        "settling.py",
        (("min(max(self._free(), 0), most)", "most"),),
        (f"{FILLED}[worker]",),
    ),
    lua(
        "a workflow's cap is looked at",
        "reserve",
        "capacity = capacity - redis.call('SCARD', keyOf(base, workflow, 'active'))",
        "",
        f"{FILLED}[workflow]",
        NESTED,
        MODEL,
    ),
    lua(
        "the namespace's cap is looked at",
        "fair_share",
        "local free = cap - redis.call('ZCARD', keyOf(base, nil, 'active'))",
        "local free = cap",
        f"{FILLED}[namespace]",
        NESTED,
        MODEL,
    ),
    lua(
        "a group's cap is looked at when it stands in line",
        "maintain_group",
        "redis.call('SCARD', keyOf(base, workflow, 'ga', group)) < limits.group",
        "limits.group > 0",
        MODEL,
    ),
    Mutation(
        "a group's cap is looked at anywhere",
        "lua/includes",
        (
            (
                "redis.call('SCARD', keyOf(base, workflow, 'ga', group)) < readLimits(base, workflow).group",
                "readLimits(base, workflow).group > 0",
            ),
            ("redis.call('SCARD', keyOf(base, workflow, 'ga', group)) < limits.group", "limits.group > 0"),
        ),
        (f"{FILLED}[group]", NESTED, MODEL),
    ),
    lua(
        "a cap that cannot be read refuses",
        "read_limits",
        "return number or 0",
        "return number or default",
        f"{CAPS}::test_a_stored_limit_that_cannot_be_read_refuses_claims",
        MODEL,
    ),
    lua(
        "a pause is looked at",
        "read_limits",
        "paused = stored.paused ~= nil",
        "paused = false",
        "test_cancel.py::test_a_paused_queue_starts_nothing_and_goes_on_with_what_runs",
        MODEL,
    ),
    lua(
        "slots are left to workflows that were refused longer",
        "fair_share",
        "free = free - 1",
        "",
        f"{CAPS}::test_under_the_namespace_cap_the_workflow_refused_longest_is_next",
        MODEL,
    ),
    lua(
        "only refusals with work behind them count",
        "live_refusals",
        "lives and redis.call('EXISTS', keyOf(base, workflow, 'ready')) == 1",
        "lives",
        f"{REGRESSIONS}::test_a_workflow_without_work_keeps_no_slot_under_the_namespace_cap",
    ),
    lua(
        "a start is counted",
        "claim_ready",
        "spendBudgets(base, shared, starts, now)",
        "",
        "test_rate_limits.py::test_no_window_has_more_starts_than_the_limit_with_many_workers",
        MODEL,
    ),
    lua(
        "a start is counted for its group",
        "claim_ready",
        "spendBudgets(base, budgets, 1, now)",
        "",
        "test_rate_limit_groups.py::test_a_group_goes_on_by_itself_when_its_budget_opens",
        MODEL,
    ),
    lua(
        "a retry that holds its group counts against the group's limiter",
        "claim_ready",
        "(group or heldGroup(base, workflow, id))",
        "group",
        f"{REGRESSIONS}::test_retries_count_against_the_limiter_of_their_group",
    ),
    lua(
        "a job that goes on starts nothing",
        "claim_job",
        "if record[5] then\n    redis.call('HSET', job, 'state', 'active'",
        "if record[5] and mayStart then\n    redis.call('HSET', job, 'state', 'active'",
        "test_rate_limit_pauses.py::test_a_pause_lets_jobs_go_on_that_have_started",
        MODEL,
    ),
    lua(
        "a pause of a limiter never shortens another",
        "pause_limiter",
        "tonumber(redis.call('GET', pause) or '0') < instant",
        "true",
        "test_rate_limit_pauses.py::test_a_pause_never_shortens_an_earlier_one",
    ),
    lua(
        "a longer pause of a limiter extends another",
        "pause_limiter",
        "tonumber(redis.call('GET', pause) or '0') < instant",
        "redis.call('EXISTS', pause) == 0",
        "test_rate_limit_pauses.py::test_a_longer_pause_extends_an_earlier_one",
    ),
    lua(
        "a job that goes on takes nothing from its group's budget when it comes to the head",
        "maintain_group",
        "if throttled and redis.call('HEXISTS', keyOf(base, workflow, 'j', head[1]), 'started') == 1 then",
        "if false then",
        "test_rate_limit_groups.py::test_a_job_goes_on_while_its_group_s_budget_is_spent",
        "test_rate_limit_groups.py::test_a_job_goes_on_when_the_refused_job_before_it_in_its_group_is_gone",
        MODEL,
    ),
    lua(
        "a group that has spent its budget stands aside while another is spent as well",
        "claim_ready",
        "refused = starts >= open and groupOpen > 0",
        "refused = starts >= open",
        MODEL,
    ),
    lua(
        "groups whose budget is open again stand in line",
        "readmit_groups",
        "maintainGroup(base, workflow, group)",
        "",
        "test_rate_limit_groups.py::test_a_group_goes_on_by_itself_when_its_budget_opens",
        MODEL,
    ),
)
