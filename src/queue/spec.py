"""What never changes in a job, packed into one field of its record."""

from typing import Annotated, Final

import msgspec

DEFAULT_BACKOFF: Final = (500, 2.0, 30_000)
DEFAULT_RESULT_TTL_MS: Final = 300_000
DEFAULT_KEEP_FAILED: Final = 100
MAX_PRIORITY: Final = 2**21 - 1


class Spec(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A job's nonce and options, as JSON; what stands at its default is not written.

    The scripts read `run`, `created`, `group`, `priority`, `expires`, `result_ttl`, `keep_failed`, `max_stalled`,
    `strict` and `round`. They write `created` when they add the job, from Redis' clock, and `round` when it begins
    anew. Durations and instants are milliseconds.
    """

    run: str
    created: int = 0
    group: str = ""
    priority: int = 0
    max_attempts: int = 1
    backoff: tuple[int, float, int] = DEFAULT_BACKOFF
    timeout: int = 0
    expires: int = 0
    result_ttl: int = DEFAULT_RESULT_TTL_MS
    keep_failed: tuple[int, int] = (DEFAULT_KEEP_FAILED, 0)
    max_stalled: int = 3
    strict: bool = False
    round: int = 0
    delay: Annotated[int, "how long after it was created it may be started"] = 0
    due: Annotated[int, "the instant before which it must not be started"] = 0
    scheduled: Annotated[int, "of a schedule's job: the instant that it stands for"] = 0
    trace: Annotated[str, "the caller's trace context"] = ""

    def rest(self) -> str:
        """What is written of it after its nonce: the same for all jobs with the same options."""
        return msgspec.json.encode(self).decode().removeprefix(spec_text(self.run, ""))

    @property
    def due_ms(self) -> int:
        """When the job could be started first."""
        return max(self.created + self.delay, self.due)


def spec_text(run: str, rest: str) -> str:
    """A spec as it is stored, of its nonce and what comes after it."""
    return f'{{"run":"{run}"{rest}'
