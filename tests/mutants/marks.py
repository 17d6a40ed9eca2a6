"""What a claim says of its job, so that its end need not look at the record."""

from typing import Final

from .mutant import MODEL, lua, script

MARK: Final = "markClaim(base, workflow, id, claim, {})"
LIES_BESIDE: Final = "test_claims.py::test_what_lies_beside_a_record_goes_with_it"
SINCE: Final = "test_claims.py::test_a_job_that_runs_says_so_and_since_when"
GOES_ON: Final = "test_claims.py::test_a_job_whose_worker_is_lost_goes_on_with_its_attempt"
GONE: Final = "test_claims.py::test_what_was_written_beside_a_record_that_is_gone_goes_with_the_claim"
HEARS: Final = "test_claims.py::test_who_began_to_wait_before_and_after_the_claim_hears_of_the_end"

MARKS: Final = (
    script(
        "a claim says that there are checkpoints",
        "record_steps",
        "markClaim(base, ARGV[i], ARGV[i + 1], claim, BESIDE)",
        "",
        LIES_BESIDE,
        MODEL,
    ),
    script("a claim says that there is a log", "append_log", MARK.format("BESIDE"), "", LIES_BESIDE),
    script("a claim says that there are events", "send_event", MARK.format("BESIDE"), "", LIES_BESIDE, MODEL),
    script("a claim says that events are taken", "take_event", MARK.format("BESIDE"), "", LIES_BESIDE),
    script("a claim says that there are children", "start_children", MARK.format("ELABORATE"), "", "test_children.py"),
    lua(
        "a claim says that it is to be cancelled",
        "end_job",
        MARK.format("ELABORATE"),
        "",
        "test_cancel.py::test_a_cancellation_that_is_swallowed_counts_all_the_same",
        MODEL,
    ),
    lua(
        "a claim says that somebody watches",
        "look_at_job",
        "markClaim(base, workflow, id, readClaim(base, workflow, id), ELABORATE)",
        "",
        "test_watch.py",
    ),
    lua("a claim says who waits", "look_at_job", "tellClaim(base, workflow, id, entered)", "", HEARS),
    lua("a claim says who waits, of its group too", "tell_claim", " .. group", "", HEARS),
    lua(
        "what takes more than its claim says takes it for good",
        "mark_claim",
        "is ~= ELABORATE and ",
        "",
        "test_claims.py::test_what_is_out_of_the_ordinary_stays_so",
    ),
    *(
        lua(f"what only a claim says is not lost by {loser}", loser, piece, "", SINCE)
        for loser, piece in (
            ("apply_outcome", "writeStart(base, workflow, id, claim)"),
            ("mark_claim", "if mark == ELABORATE then writeStart(base, workflow, id, claim) end"),
        )
    ),
    lua(
        "what only a claim says is not lost with its worker",
        "recover_claim",
        "\n  writeStart(base, workflow, id, claim)",
        "",
        GOES_ON,
        MODEL,
    ),
    lua(
        "a claim that is over frees the group that it has",
        "recover_claim",
        "group and { group = group } or spec",
        "spec",
        "test_claims.py::test_a_group_is_free_though_the_record_of_its_job_is_gone_and_its_id_used_again",
    ),
    lua(
        "a claim says that there may be something of an earlier round",
        "plain_claim",
        "string.sub(spec, 1, 9) == '{\"round\":' and BESIDE or PLAIN",
        "PLAIN",
        "test_continue_as_new.py::test_what_an_earlier_round_has_left_goes_with_the_record",
    ),
    lua(
        "a claim stands there as soon as its job is active",
        "claim_job",
        "redis.call('HSET', keyOf(base, workflow, 'active'), id, claim)",
        "",
        "test_claims.py::test_who_claims_a_parent_hears_of_a_child_that_ends_in_the_same_call",
    ),
    lua(
        "what was written beside a record that is gone goes with the claim",
        "recover_claim",
        "if not record[2] then eraseJob(base, workflow, id) end",
        "",
        GONE,
    ),
    lua(
        "the group of a job whose record is gone is free with the claim",
        "recover_claim",
        "if group then releaseGroup(base, workflow, { group = group }) end",
        "",
        GONE,
    ),
)
