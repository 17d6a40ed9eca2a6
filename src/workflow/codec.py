"""Encryption and compression of what is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

from ..errors import InvalidArgumentError, SerializationError
from ..queue.outcome import Cancelled, Failed, Failure, Outcome, Retry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .values import Reader, Serializer

__all__ = ["PLAIN", "Codec", "CodedSerializer", "Notes", "check_codec"]

CODED: Final = "coded:"


class Codec(Protocol):
    """Turns every text that a namespace stores into another, and back.

    That is inputs, also those of schedules, checkpoints, events, progress and results; and what people read: messages
    and tracebacks of failures, reasons of cancellations, the lines of logs. Names and ids, and the type's name of a
    failure, stay as they are: what is secret does not belong into the id of a job or a group.

    Both methods are called for each text, from any thread, and must not block for long. What ``decode`` is given was
    read from Redis: it must raise when that is nothing that ``encode`` made. Every process of a namespace needs the
    same codec.

    Example:
        Encryption with a key of the ``cryptography`` package:

        >>> from cryptography.fernet import Fernet
        >>> class Encrypted:
        ...     def __init__(self, key: bytes) -> None:
        ...         self._fernet = Fernet(key)
        ...
        ...     def encode(self, text: str, /) -> str:
        ...         return self._fernet.encrypt(text.encode()).decode()
        ...
        ...     def decode(self, text: str, /) -> str:
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


def check_codec(codec: object) -> None:
    """Refuse what is no codec.

    Raises:
        InvalidArgumentError: It is a class, or has no ``encode`` or no ``decode``.
    """
    if isinstance(codec, type):
        raise InvalidArgumentError(f"codec must be an object, not a class: make one of {codec.__qualname__}")
    for name in ("encode", "decode"):
        if not callable(getattr(codec, name, None)):
            raise InvalidArgumentError(f"codec must have methods encode and decode, from str to str; {codec!r} has not")


class CodedSerializer:
    """A serializer whose texts a codec encodes."""

    def __init__(self, serializer: Serializer, codec: Codec) -> None:
        self._serializer = serializer
        self._codec = codec

    def dumps(self, value: Any, /) -> str:
        """A value as the codec's text.

        Raises:
            SerializationError: It cannot be written, or the codec cannot encode it.
        """
        return _encoded(self._codec, self._serializer.dumps(value))

    def loads(self, text: str, type: Any, /, *, convert: bool) -> Any:
        """A value from the codec's text.

        Raises:
            SerializationError: The codec refuses it, or the value cannot be read.
        """
        return self._serializer.loads(_decoded(self._codec, text), type, convert=convert)

    def Reader(self, type: Any, /, *, convert: bool) -> Reader:  # noqa: N802 - as the serializer has it
        """What reads the texts of one type."""
        return _CodedReader(self._serializer.Reader(type, convert=convert), self._codec)


class _CodedReader:
    def __init__(self, reader: Reader, codec: Codec) -> None:
        self._reader = reader
        self._codec = codec

    def read(self, text: str, /) -> Any:
        return self._reader.read(_decoded(self._codec, text))

    def read_many(self, texts: Sequence[str], /) -> list[Any]:
        return self._reader.read_many([_decoded(self._codec, text) for text in texts])


class Notes:
    """The texts that people read: how they are stored with a codec, or (None) as they are.

    Some are written by the scripts, which have no codec, so that those that went through it are marked.
    """

    def __init__(self, codec: Codec | None) -> None:
        self._codec = codec

    def write(self, text: str) -> str:
        """A text as it is stored."""
        if self._codec is None or not text:
            return text
        try:
            return CODED + _encoded(self._codec, text)
        except SerializationError as error:
            return f"(a text that could not be stored: {error})"

    def read(self, text: str) -> str:
        """A text from what is stored. What cannot be read says so: it is no reason to fail otherwise."""
        if self._codec is None or not text.startswith(CODED):
            return text
        try:
            return _decoded(self._codec, text.removeprefix(CODED))
        except SerializationError as error:
            return f"(a text that cannot be read: {error})"

    def read_value(self, text: str) -> str:
        """The serializer's text of a value that is stored, to be shown; what cannot be read says so."""
        if self._codec is None:
            return text
        try:
            return _decoded(self._codec, text)
        except SerializationError as error:
            return f"(a text that cannot be read: {error})"

    def write_failure(self, failure: Failure) -> Failure:
        """A failure with its texts as they are stored."""
        if self._codec is None:
            return failure
        return failure.with_texts(self.write)

    def write_outcome(self, outcome: Outcome) -> Outcome:
        """An outcome with the texts of its failure, or its reason, as they are stored."""
        if self._codec is None:
            return outcome
        if isinstance(outcome, (Failed, Retry)):
            return msgspec.structs.replace(outcome, failure=self.write_failure(outcome.failure))
        if isinstance(outcome, Cancelled):
            return msgspec.structs.replace(outcome, reason=self.write(outcome.reason))
        return outcome


PLAIN: Final = Notes(None)


def _encoded(codec: Codec, text: str) -> str:
    try:
        coded: str = codec.encode(text)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # an extension that panics raises one that is no Exception
        raise SerializationError(f"the codec cannot encode it: {_named(error)}") from error
    coded = _checked(coded, "encode")
    try:
        coded.encode()
    except UnicodeEncodeError as error:
        raise SerializationError("the codec's encode returned a text that UTF-8 cannot write") from error
    return coded


def _checked(text: object, method: str) -> str:
    if not isinstance(text, str):
        raise SerializationError(f"the codec's {method} returned {type(text).__name__}: it must return a str")
    return text


def _decoded(codec: Codec, coded: str) -> str:
    try:
        text: str = codec.decode(coded)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # as above
        raise SerializationError(
            f"the codec refuses it ({_named(error)}): every process of a namespace needs the codec, and the keys, that "
            "it was written with"
        ) from error
    return _checked(text, "decode")


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
