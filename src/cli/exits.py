from enum import IntEnum


class Exit(IntEnum):
    """What the command's exit code says to whoever supervises it.

    Attributes:
        STOPPED: It was told to stop, and everything was handed back.
        FAILED: It broke down, or could not reach Redis: starting it again makes sense.
        MISUSED: Its arguments, the module, or the namespace cannot be used: starting it again does not help.
    """

    STOPPED = 0
    FAILED = 1
    MISUSED = 2


class MisuseError(Exception):
    """The command cannot be carried out as it was given; the text says why, and what would be right."""
