"""What a claim gives and what it takes: tokens, receipts, leases, events and fires that count once."""

from typing import Final

from .mutant import MODEL, RECOVERY, Mutation, lua, script

CLAIMS: Final = (
    Mutation(
        "an outcome counts only with the claim's token",
        "lua/includes",
        (
            ("if not isClaim(claim, token) then return '0' end", "if not claim then return '0' end"),
            ("begins ~= plain and begins ~= beside", "not begins"),
            ("not claim or string.sub(claim, 1, #mine) ~= mine", "not claim"),
        ),
        (f"{RECOVERY}::test_the_outcome_of_a_claim_that_was_taken_over_is_refused", MODEL),
    ),
    script(
        "a checkpoint counts only with the claim's token",
        "record_steps",
        "isClaim(claim, ARGV[i + 2])",
        "claim",
        f"{RECOVERY}::test_a_claim_that_is_taken_over_ends_its_run_and_refuses_what_it_writes",
        MODEL,
    ),
    lua(
        "progress and log count only with the claim's token",
        "is_claim",
        "string.sub(claim, 2, #token + 2) == token .. ' '",
        "true",
        "test_progress_and_logs.py::test_what_a_lost_claim_says_is_refused",
        MODEL,
    ),
    script(
        "a lease is renewed only with the claim's token",
        "renew_claims",
        "isClaim(claim, ARGV[i + 2])",
        "claim",
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
    Mutation(
        "each of a worker's calls on the wire has a receipt of its own",
        "lua",
        (
            ("= worker .. '/' .. number % 3", "= worker .. '/' .. number % 2"),
            ("'/' .. string.char(48 + number % 3)", "'/' .. string.char(48 + number % 2)"),
        ),
        ("test_lost_answers.py::test_every_job_runs_once", MODEL),
    ),
    Mutation(
        "a worker that stops gives up its claim behind the pop",
        "settling.py",
        (("        if lane.unanswered:\n", "        if False:\n"),),
        ("test_shutdown.py::test_what_is_claimed_behind_the_pop_of_a_stopping_worker_is_handed_back",),
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
        "test_sweeps.py::test_where_nobody_has_swept_for_long_workers_get_one_more_lease",
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
)
