from dataclasses import dataclass
from typing import Final

LOG_LEVELS: Final = ("debug", "info", "warning", "error")


@dataclass(frozen=True, kw_only=True)
class WorkerArguments:
    """What one worker process is given.

    Attributes:
        target: Where its namespace is: ``module:name``.
        concurrency: How many jobs at once.
        lease: Seconds; None for the worker's own default.
        grace: Seconds; None for the worker's own default.
        log_level: One of ``LOG_LEVELS``.
        lifeline: Whether the end of its standard input stops it, as SIGTERM does.
    """

    target: str
    concurrency: int = 10
    lease: float | None = None
    grace: float | None = None
    log_level: str = "info"
    lifeline: bool = False

    def words(self) -> list[str]:
        """The same as arguments of ``lanner``."""
        words = ["worker", "--concurrency", str(self.concurrency), "--log-level", self.log_level]
        if self.lease is not None:
            words += ["--lease", str(self.lease)]
        if self.grace is not None:
            words += ["--grace", str(self.grace)]
        if self.lifeline:
            words.append("--lifeline")
        return [*words, "--", self.target]
