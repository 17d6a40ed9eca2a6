"""Shows that the tests of the queue can fail: takes one thing at a time out of a copy of the package, and runs them.

``python tests/mutations.py`` runs all, ``python tests/mutations.py "a word"`` those whose name has it. It ends with 1
if a test passes all the same, or if there is nothing any more at the place that is to be taken out.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
TOO_LONG: Final = "60"  # what waits for ever without the thing that was taken out has failed by then
# other ones each time: the few that are always the same need not hold one for each thing
SEQUENCES: Final = {"LANNER_MODEL_EXAMPLES": "1500", "LANNER_MODEL_SHRINK": "0"}

MODEL: Final = "test_queue_model.py"
CAPS: Final = "test_caps.py"
FILLED: Final = f"{CAPS}::test_a_cap_is_filled_and_never_exceeded"
NESTED: Final = f"{CAPS}::test_no_cap_is_exceeded_where_all_of_them_hold"
RECOVERY: Final = "test_leases_and_recovery.py"
REGRESSIONS: Final = "test_queue_regressions.py"


@dataclass(frozen=True)
class Mutation:
    """One thing that is taken out.

    Attributes:
        name: What is not so any more.
        file: Where it stands, below ``queue``.
        pieces: What stands there, and what instead.
        tests: Those that have to fail, each.
    """

    name: str
    file: str
    pieces: tuple[tuple[str, str], ...]
    tests: tuple[str, ...]


def lua(name: str, include: str, piece: str, instead: str, *tests: str) -> Mutation:
    """Something of an include."""
    return Mutation(name, f"lua/includes/{include}.lua", ((piece, instead),), tests)


def script(name: str, transition: str, piece: str, instead: str, *tests: str) -> Mutation:
    """Something of a script itself."""
    return Mutation(name, f"lua/{transition}.lua", ((piece, instead),), tests)


MUTATIONS: Final = (
    Mutation(
        "a worker claims no more than its slots",
        "settling.py",
        (("min(max(self._free(), 0), CLAIMED_AT_ONCE)", "CLAIMED_AT_ONCE"),),
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
        "lives and redis.call('EXISTS', keyOf(base, since[i], 'ready')) == 1",
        "lives",
        f"{REGRESSIONS}::test_a_workflow_without_work_keeps_no_slot_under_the_namespace_cap",
    ),
    lua(
        "an outcome counts only with the claim's token",
        "apply_outcome",
        "record[1] ~= token",
        "not record[1]",
        f"{RECOVERY}::test_the_outcome_of_a_claim_that_was_taken_over_is_refused",
        MODEL,
    ),
    script(
        "a checkpoint counts only with the claim's token",
        "record_steps",
        "record[1] == ARGV[i + 2]",
        "record[1]",
        f"{RECOVERY}::test_a_claim_that_is_taken_over_ends_its_run_and_refuses_what_it_writes",
        MODEL,
    ),
    lua(
        "progress and log count only with the claim's token",
        "holds_claim",
        "== token",
        "~= nil",
        "test_progress_and_logs.py::test_what_a_lost_claim_says_is_refused",
        MODEL,
    ),
    script(
        "a lease is renewed only with the claim's token",
        "renew_claims",
        "record[1] == ARGV[i + 2]",
        "record[1]",
        f"{RECOVERY}::test_a_claim_that_was_taken_over_is_not_renewed",
    ),
    lua(
        "a call that was answered changes nothing",
        "read_receipt",
        "if not receipt then return nil end",
        "if true then return nil end",
        "test_lost_answers.py::test_jobs_that_leave_nothing_run_once",
        MODEL,
    ),
    lua(
        "a cancellation that was asked for decides how a run ends",
        "apply_outcome",
        "if record[3] then\n    if kind",
        "if false then\n    if kind",
        "test_cancel.py::test_a_cancellation_that_is_swallowed_counts_all_the_same",
        MODEL,
    ),
    lua(
        "a group's next job stands in line when one has ended",
        "release_group",
        "maintainGroup(base, workflow, spec.group)",
        "",
        f"{FILLED}[group]",
        MODEL,
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
        "addWaiting(base, workflow, id, spec, tonumber(record[4]), holds)",
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
        "redis.call('EXISTS', keyOf(base, workflow, 'delayed'), keyOf(base, workflow, 'parked')) == 0",
        "true",
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
    lua("a new job wakes a worker", "enqueue_now", "armWake(base, workflow)", "", MODEL),
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
    lua(
        "who leaves work behind wakes another",
        "reserve",
        "armWake(base, workflow)",
        "",
        f"{CAPS}::test_a_raised_cap_wakes_as_many_workers_as_it_has_room_for",
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
    lua(
        "a worker that is lost too often fails the job",
        "recover_claim",
        "stalls <= spec.max_stalled",
        "true",
        f"{RECOVERY}::test_a_job_that_loses_its_worker_too_often_in_a_row_fails",
        MODEL,
    ),
    script(
        "where nobody could sweep, workers get another lease",
        "sweep_claims",
        "last and now - last > math.max(lease, interval)",
        "false",
        f"{RECOVERY}::test_where_nobody_has_swept_for_long_workers_get_one_more_lease",
    ),
    lua(
        "a member without a record is dropped",
        "promote_due",
        "redis.call('ZREM', delayed, id)",
        "if redis.call('EXISTS', keyOf(base, workflow, 'j', id)) == 1 then redis.call('ZREM', delayed, id) end",
        "test_delays.py::test_a_member_without_a_record_is_dropped_and_not_resurrected",
    ),
    lua(
        "what woke a job wakes it once",
        "promote_due",
        "redis.call('HDEL', keyOf(base, workflow, 'j', id), 'awaits')",
        "",
        f"{REGRESSIONS}::test_a_job_sleeps_through_an_event_that_it_has_ceased_to_wait_for",
        MODEL,
    ),
    lua(
        "what was not started in time fails",
        "expire_due",
        "not record[3] and not record[5]",
        "false",
        "test_delays.py::test_a_job_that_was_not_started_in_time_fails_while_every_slot_is_taken",
        MODEL,
    ),
    lua(
        "a debounced job expires later",
        "dedup_job",
        "if spec.expires > 0 then",
        "if false then",
        "test_dedup.py::test_a_debounced_job_does_not_expire_while_it_is_put_off",
        MODEL,
    ),
    lua(
        "a refused job opens no window",
        "add_job",
        "  local existing =",
        "  if dedup ~= '' then openWindow(base, workflow, id, dedup) end\n  local existing =",
        "test_dedup.py::test_an_add_that_is_refused_opens_no_window",
        MODEL,
    ),
    lua(
        "an id that is used again keeps nothing of its earlier life",
        "erase_job",
        "keyOf(base, workflow, 'steps', id),",
        "",
        "test_retry_and_dead_letter.py::test_a_job_of_any_state_is_removed_with_all_that_is_its",
        MODEL,
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
        "groups whose budget is open again stand in line",
        "readmit_groups",
        "maintainGroup(base, workflow, group)",
        "",
        "test_rate_limit_groups.py::test_a_group_goes_on_by_itself_when_its_budget_opens",
        MODEL,
    ),
    lua(
        "failed jobs beyond those that are kept go",
        "trim_failed",
        "dropFailed(base, workflow, id, count == 0)",
        "",
        "test_retry_and_dead_letter.py::test_of_failed_jobs_the_latest_are_kept",
        MODEL,
    ),
    lua(
        "a result is kept no longer than it is to be",
        "begin_retention",
        "redis.call('PEXPIRE', keyOf(base, workflow, 'j', id), ttl)",
        "",
        MODEL,
    ),
    script(
        "an event of a sender counts once",
        "send_event",
        "string.find(seen, '\\n' .. sender .. '\\n', 1, true)",
        "false",
        "test_lost_answers.py::test_events_that_are_sent_again_arrive_once",
        MODEL,
    ),
    script(
        "a fire is made by one worker",
        "fire_schedule",
        "if redis.call('ZSCORE', due, id) ~= ARGV[3] then return -1 end",
        "",
        MODEL,
    ),
    script(
        "a fire is skipped while the job of the last one lives",
        "fire_schedule",
        "if lives and ARGV[7] == 'skip' then",
        "if false then",
        "test_schedule_overlap.py::test_a_fire_is_skipped_while_the_previous_job_lives",
    ),
)


def mutate(mutation: Mutation, package: Path) -> str:
    """Take the thing out of the copy; what is wrong if it is not there, in words."""
    place = package / "queue" / mutation.file
    files = sorted(place.glob("*.lua")) if place.is_dir() else [place]
    texts = {file: file.read_text() for file in files}
    for piece, instead in mutation.pieces:
        holders = [file for file in files if piece in texts[file]]
        if len(holders) != 1 or texts[holders[0]].count(piece) != 1:
            return f"{mutation.file} has this {len(holders)} times, not once: {piece}"
        texts[holders[0]] = texts[holders[0]].replace(piece, instead)
    for file, text in texts.items():
        file.write_text(text)
    return ""


def run(package: Path, test: str) -> subprocess.CompletedProcess[str]:
    """Run a test with the copy in the package's place; a sequence that fails is enough, be it long."""
    options = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--timeout", TOO_LONG]
    paths = [str(package.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(ROOT / "tests" / test)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **SEQUENCES},
        capture_output=True,
        text=True,
        check=False,
    )


def judge(mutation: Mutation) -> list[str]:
    """What is wrong with a mutation: each of its tests has to fail, and for want of what was taken out."""
    with tempfile.TemporaryDirectory() as directory:
        package = Path(directory) / "lanner"
        shutil.copytree(ROOT / "src", package, ignore=shutil.ignore_patterns("__pycache__"))
        if wrong := mutate(mutation, package):
            return [wrong]
        wrongs: list[str] = []
        for test in mutation.tests:
            ended = run(package, test)
            if ended.returncode == 0:
                wrongs.append(f"{test} passes all the same")
            elif ended.returncode != 1 or "ScriptError" in ended.stdout:
                wrongs.append(f"{test} did not fail, but break:\n{ended.stdout[-2000:]}{ended.stderr[-2000:]}")
        return wrongs


def main(word: str) -> int:
    """Run the mutations whose name has the word, side by side. 1 if a test did not notice one, or there is none."""
    chosen = [mutation for mutation in MUTATIONS if word in mutation.name]
    unnoticed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for mutation, wrongs in zip(chosen, pool.map(judge, chosen), strict=True):
            unnoticed += bool(wrongs)
            files = ", ".join(test.partition("::")[0] for test in mutation.tests)
            lines = [f"{'UNNOTICED' if wrongs else 'noticed'}: {mutation.name} ({files})", *wrongs]
            sys.stdout.write("\n  ".join(lines) + "\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(chosen) - unnoticed} of {len(chosen)} noticed\n")
    return int(unnoticed > 0 or not chosen)


if __name__ == "__main__":
    sys.exit(main(" ".join(sys.argv[1:])))
