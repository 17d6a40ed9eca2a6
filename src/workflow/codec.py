"""Encryption and compression of what is stored."""

from typing import Protocol

__all__ = ["Codec"]


class Codec(Protocol):
    """Turns every text that a namespace stores (inputs, checkpoints, events, results) into another, and back.

    Both methods are called for each text, from any thread, and must not block for long. What ``decode`` is given was
    read from Redis: it must raise when that is nothing that ``encode`` made. Names, ids and the messages and tracebacks
    of failures are no such texts. Every process of a namespace needs the same codec.

    Example:
        Encryption with a key of the ``cryptography`` package:

        >>> from cryptography.fernet import Fernet
        >>> class Encrypted:
        ...     def __init__(self, key: bytes) -> None:
        ...         self._fernet = Fernet(key)
        ...
        ...     def encode(self, text: str) -> str:
        ...         return self._fernet.encrypt(text.encode()).decode()
        ...
        ...     def decode(self, text: str) -> str:
        ...         return self._fernet.decrypt(text.encode()).decode()
        >>> codec: Codec = Encrypted(Fernet.generate_key())
        >>> codec.decode(codec.encode('{"json":1}'))
        '{"json":1}'
    """

    def encode(self, text: str, /) -> str:
        """What is stored instead of a text."""
        ...

    def decode(self, text: str, /) -> str:
        """The text of what was stored.

        Raises:
            Exception: It is nothing that ``encode`` made. The job fails with this reason.
        """
        ...
