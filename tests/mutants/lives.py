"""What becomes of a job: how it ends, and what of it is kept."""

from typing import Final

from .mutant import MODEL, REGRESSIONS, lua, script

LIVES: Final = (
    lua(
        "a cancellation that was asked for decides how a run ends",
        "apply_outcome",
        "if record[3] then\n    if kind",
        "if false then\n    if kind",
        "test_cancel.py::test_a_cancellation_that_is_swallowed_counts_all_the_same",
        MODEL,
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
        "failed jobs beyond those that are kept go",
        "trim_failed",
        "dropFailed(base, workflow, id, count == 0)",
        "",
        "test_retry_and_dead_letter.py::test_of_failed_jobs_the_latest_are_kept",
        MODEL,
    ),
    lua(
        "a result is kept no longer than it is to be",
        "expire_record",
        "redis.call('PEXPIRE', keyOf(base, workflow, 'j', id), ttl)",
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
