"""What sends a call, or a job, the long way, and what the short cuts write."""

from typing import Final

from .mutant import SHORT_CUTS, Mutation, lua

NOBODY: Final = "'nobody'"


def cut(include: str, name: str, piece: str, instead: str = "") -> Mutation:
    """Something of a short cut; it is named after what is overlooked, or not done."""
    return lua(f"{include}: {name}", include, piece, instead, SHORT_CUTS)


def taken(name: str, *fields: str) -> Mutation:
    """Fields that are taken for none that matter, in the record of a job that is claimed."""
    ordinary = "parent = record[i + 1]"
    are = " or ".join(f"field == '{field}'" for field in fields)
    return cut("read_unstarted", name, ordinary, f"{ordinary}\n    elseif {are} then\n      data = data")


def forgotten(state: str) -> Mutation:
    """The entry of an ended job that is not forgotten when its id is used again, whichever way is taken."""
    piece = f"redis.call('ZREM', keyOf(base, workflow, '{state}'), ...)"
    return lua(f"forget_ended: {state}", "forget_ended", piece, "", "test_dedup.py")


SETTLING: Final = (
    cut("settle_simply", "another end", "ARGV[6] ~= 'completed' or "),
    cut("settle_simply", "another workflow", " or ARGV[7] ~= ARGV[14]"),
    cut("settle_simply", "a copy of a call", "if readReceipt(base, caller, number) then return nil end"),
    cut("settle_simply", "limits of the namespace", "all .. 'limits', "),
    cut("settle_simply", "what is put off", "all .. 'cascades', "),
    cut("settle_simply", "limits", "own .. 'limits', "),
    cut("settle_simply", "groups", "own .. 'groups', "),
    cut("settle_simply", "delays", "own .. 'delayed',"),
    cut("settle_simply", "expiries", "own .. 'expiring', "),
    cut("settle_simply", "groups that stand aside", ", own .. 'throttled'"),
    cut("settle_simply", "a lost claim", "or string.sub(claim, 1, #mine) ~= mine "),
    cut(
        "settle_simply", "a record that is gone of a job that ends", "jobs .. id, till) == 0", "jobs .. id, till) == 9"
    ),
    cut("settle_simply", "a group's job that ends", "string.find(claim, '\\n', 1, true)", "false"),
    cut("settle_simply", "a long result", " or #result > PUBLISHED_WHOLE"),
    cut("settle_simply", "a record that is gone, or else out of the ordinary", "if not spec then return nil end"),
    cut("settle_simply", "slots", "math.min(ARGV[4], ARGV[#ARGV])", "tonumber(ARGV[#ARGV])"),
    cut("settle_simply", "keeps a result no longer", "redis.call('PEXPIREAT', jobs .. id, till) == 0", "false"),
    cut("settle_simply", "forgets the ended", "trimEnded(base, workflow, 'completed', now)"),
    cut("read_unstarted", "options behind a group", " and not string.find(spec, ',', options + 1, true)", ""),
    cut("read_unstarted", "options that are no group", "string.byte(spec, options + 2) == GROUP and ", ""),
    cut("settle_simply", "tells who waits", "if waiters ~= '' then", "if false then"),
    cut("settle_simply", "wakes another", "armWake(base, workflow)"),
    cut(
        "settle_simply", "looks whether any is left", "0, room, 'WITHSCORES'", "0, math.max(room - 1, 0), 'WITHSCORES'"
    ),
    cut("settle_simply", "starts the order over", "restCounter(base, workflow)"),
    cut("settle_simply", "keeps its answer", "writeReceipt(base, caller, number, receipt)"),
)
ADDING: Final = (
    cut("add_simply", "several jobs", "#ARGV ~= 12 or "),
    cut("add_simply", "a delay", "ARGV[5] ~= '' or "),
    cut("add_simply", "a key", " or ARGV[8] ~= ''"),
    cut("add_simply", "a group", "'\"group\":', "),
    cut("add_simply", "a priority", "'\"priority\":', "),
    cut("add_simply", "an expiry", ", '\"expires\":'"),
    cut("add_simply", "a copy of a call", "readReceipt(base, producer, number) or "),
    cut("add_simply", "an id in use", "redis.call('EXISTS', job, limits) > 0", "redis.call('EXISTS', limits) > 0"),
    cut("add_simply", "limits", "redis.call('EXISTS', job, limits) > 0", "redis.call('EXISTS', job) > 0"),
    cut("add_simply", "what is there", "redis.call('EXISTS', job, limits, own .. 'delayed') > 0", "false"),
    cut("add_simply", "what is due before", "firstInstant(base, workflow, 'delayed') <= now", "false"),
    cut("add_simply", "forgets an ended job of the id", "if ARGV[6] ~= 'fresh' then", "if false then"),
    cut("add_simply", "wakes a worker", "armWake(base, workflow)"),
    cut("add_simply", "keeps its answer", "writeReceipt(base, producer, number, { '' })"),
    cut("add_together", "an id in use", "redis.call('EXISTS', unpack(keys)) > 0", "false"),
    cut("add_together", "forgets ended jobs of the ids", "if named[1] then", "if false then"),
    forgotten("completed"),
    forgotten("cancelled"),
    cut("add_together", "a stream", "readLimits(base, workflow).stream > 0", "false"),
    cut("add_together", "has a group stand in line", "maintainGroup(base, workflow, group)"),
)
COMPLETING: Final = (
    cut(
        "complete_together",
        "a claim that says not all, or is lost",
        "begins ~= plain and begins ~= beside",
        "not begins",
    ),
    cut("complete_together", "a record that is gone", "job, till) == 0", "job, till) == 9"),
    cut("complete_together", "says when it began", "completed .. started", "completed"),
    cut("settle_simply", "says when it began", "stamp .. ' ' .. started", "stamp"),
    cut("settle_simply", "says of what is elaborate that it runs", "if elaborate[i] then", "if false then"),
    cut("claim_unstarted", "says of what is elaborate that it runs", "if elaborate then", "if false then"),
    cut("plain_claim", "a parent", "parent or "),
    cut("plain_claim", "a time to be kept for", "string.find(spec, '\"result_ttl\":', 1, true)", "false"),
    cut("plain_claim", "who waits", "place .. ' ' .. (waiters or '')", "place .. ' '"),
    cut("plain_claim", "a group", "group and claim .. '\\n' .. group or claim", "claim"),
    cut("complete_together", "a stream", "readLimits(base, workflow).stream == 0", "true"),
    cut("complete_together", "keeps a result no longer", "call('PEXPIREAT', job, till) == 0", "false"),
    cut("complete_job", "keeps a result no longer", "redis.call('PEXPIRE', job, ttl)"),
    cut("complete_together", "gives up its group", "if line then", "if false then"),
    cut("complete_together", "tells which group is free", "freed[#freed + 1] = sub(claim, line + 1)", ""),
    cut("release_groups", "limits of the rate", " or limits.limiters or readLimits(base).limiters", ""),
    cut("release_groups", "jobs of the group that run", "last and counts[i] == '1'", "true"),
    cut("release_groups", "frees the slots of those of which one runs", "freeSlot(base, workflow, group)"),
    cut("release_groups", "frees the slots", "redis.call('HDEL', slots, unpack(names))"),
    cut("release_groups", "stands in line", "if n > 0 then", "if false then"),
    cut("complete_together", "tells who waits", "elseif waiters then", "elseif false then"),
    cut("complete_together", "a long result", "waiters and #result > PUBLISHED_WHOLE", "false"),
    cut("say_ends", "who waits for some only", "3 * #places == last - first + 1", "true"),
    cut("complete_together", "what lies beside a job", "if begins == beside then", "if false then"),
    cut("clear_beside", "steps", "keyOf(base, workflow, 'steps', id), "),
    cut("clear_beside", "events", ", keyOf(base, workflow, 'events', id)"),
    cut("clear_beside", "a log", "redis.call('PEXPIRE', keyOf(base, workflow, 'log', id), ttl)"),
    cut("enter_completed", "forgets the ended", "trimEnded(base, workflow, 'completed', now)"),
)
CLAIMING: Final = (
    cut("assume_no_limits", "limits of the namespace", "keys = { keyOf(base, nil, 'limits') }", "keys = { 'nobody' }"),
    cut("assume_no_limits", "limits", "keyOf(base, want[1], 'limits')", NOBODY),
    cut("look_ahead", "delays", "keyOf(base, want[1], 'delayed')", NOBODY),
    cut("look_ahead", "expiries", "keyOf(base, want[1], 'expiring')", NOBODY),
    cut("look_ahead", "groups that stand aside", "keyOf(base, want[1], 'throttled')", NOBODY),
    cut("look_ahead", "what is put off", "('EXISTS', cascades, unpack(keys))", "('EXISTS', unpack(keys))"),
    cut("reserve", "a stream", " or limits.stream > 0"),
    taken("a job that does not wait", "state"),
    taken("attempts before", "failures", "failure", "score", "started", "stalls"),
    taken("who watches", "watchers"),
    taken("children", "kids"),
    cut("claim_unstarted", "a record that is gone, or else out of the ordinary", "not spec or ", "spec and "),
    cut("claim_unstarted", "an expiry", " or options and string.find(spec, '\"expires\":', 1, true)"),
    cut("claim_ready", "a stream", "own.stream == 0", "true"),
    lua(
        "a job that was never started spends what it takes to start",
        "claim_ready",
        "          started = true",
        "          started = false",
        "test_rate_limits.py",
    ),
    cut("claim_simply", "the cap of a group", "if runs < most then", "if true then"),
    cut("claim_simply", "holds a slot in the group", "call('HINCRBY', slots, group, 1)"),
    cut("claim_simply", "holds the slot of the group", "  takeSlots(slots, taken)\n", "\n"),
    cut("claim_simply", "a job of a group that runs", "counts[g] and tonumber(counts[g]) or 0", "0"),
    cut("take_slots", "slots of many groups", ", LONG, '', unpack(taken)", ", LONG, ''"),
    cut("take_slots", "what is no group", "redis.call('HDEL', slots, LONG)"),
    cut("claim_simply", "forgets a group of which none waits", "forgetGroups(base, workflow, full, emptied)"),
    cut("claim_simply", "has a group stand in line", "maintainGroup(base, workflow, group)", "nil"),
    cut("claim_simply", "puts back what stands behind", "popped[i + 3] and soonest < tonumber(popped[i + 3])", "false"),
    cut("enter_active", "slots of many", ", LONG, '', unpack(claims)", ", LONG, ''"),
    cut("enter_active", "what is no job's slot", "redis.call('HDEL', active, LONG)"),
    cut("enter_active", "counts what is claimed", "countRunning(base, workflow, #claims / 2)"),
    cut("settle_simply", "counts what is claimed", "if more ~= 0 then", "if false then"),
    cut(
        "long",
        "a job of any id",
        "'this comes and goes at once, and is longer than what Redis keeps\\nin a list'",
        "string.rep('-', 256)",
    ),
    cut("forget_groups", "others of the group wait", "redis.call('EXISTS', keys[i]) == 0", "true"),
    cut(
        "forget_groups", "a group of several of which none waits", "redis.call('EXISTS', unpack(keys)) == #keys", "true"
    ),
)
SHORT_CUTS_TAKEN: Final = (*SETTLING, *ADDING, *COMPLETING, *CLAIMING)
