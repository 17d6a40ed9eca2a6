import json
from dataclasses import dataclass

from .release import Release


@dataclass(frozen=True, slots=True)
class Orders:
    """What a user tells the keeper that it starts.

    Attributes:
        directory: The data directory's path, for messages; the keeper works in it as its current directory.
        lock: The descriptor of the locked ``keeper.lock``.
        binary: The server program, or the empty string when none was found.
        release: What the program is, or else what to tell the user when a server must be started.
    """

    directory: str
    lock: int
    binary: str
    release: Release | str

    def to_json(self) -> str:
        """As one command-line argument."""
        release = self.release if isinstance(self.release, str) else [self.release.kind, self.release.version]
        return json.dumps([self.directory, self.lock, self.binary, release])

    @classmethod
    def from_json(cls, text: str) -> "Orders":
        """The opposite of ``to_json``."""
        directory, lock, binary, release = json.loads(text)
        return cls(
            directory, lock, binary, release if isinstance(release, str) else Release(release[0], tuple(release[1]))
        )
