from enum import IntEnum


class Exit(IntEnum):
    """What the command's exit code says to whoever supervises it.

    Attributes:
        STOPPED: It was told to stop, and everything was handed back; or it has done what it was to do.
        FAILED: It broke down, could not reach Redis, or could not do it for some job: doing it again may make sense.
        MISUSED: Its arguments, the module, or the namespace cannot be used: doing it again does not help.
    """

    STOPPED = 0
    FAILED = 1
    MISUSED = 2


class MisuseError(Exception):
    """The command cannot be carried out as it was given; the text says why, and what would be right."""


class FailureError(Exception):
    """The command could not be carried out, and may be another time; the text says why."""
