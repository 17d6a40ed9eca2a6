from collections.abc import Generator
from contextlib import contextmanager

from redis.exceptions import RedisError

from ..errors import (
    ClosedError,
    DataModelError,
    EmbeddedServerError,
    InvalidArgumentError,
    RedisUnavailableError,
    ServerVersionError,
)
from .exits import FailureError, MisuseError


@contextmanager
def in_words() -> Generator[None]:
    """What a command says of the errors of the block that are its user's, or Redis'; others are ours, and pass.

    Raises:
        MisuseError: What was given cannot be used.
        FailureError: Redis cannot be reached, or refuses.
    """
    try:
        yield
    except (InvalidArgumentError, ServerVersionError, DataModelError, EmbeddedServerError, ClosedError) as error:
        raise MisuseError(str(error)) from error
    except (RedisUnavailableError, RedisError) as error:
        raise FailureError(str(error)) from error
