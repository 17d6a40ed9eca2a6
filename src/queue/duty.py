"""Background duties of a worker: each says what it does once; one runner loops, backs off and stops."""

import asyncio
import contextlib
import logging
import random
from abc import ABC, abstractmethod
from typing import Final

from .calling import Pauses
from .link import NotSentError, UnansweredError
from .outage import Outage

logger: Final = logging.getLogger(__name__)


class Duty(ABC):
    """Something a worker does now and then.

    Attributes:
        poked: Set to have it done at once.
        jitter: By how much a pause may be longer, so that a fleet does not come in step.
    """

    jitter = 0.1

    def __init__(self) -> None:
        self.poked = asyncio.Event()

    @abstractmethod
    async def once(self) -> float:
        """Do it. Seconds until it is due again."""


async def perform(duty: Duty, outage: Outage) -> None:
    """Do a duty whenever it is due, until cancelled; a failure is logged and does not end it."""
    pauses = Pauses()
    while True:
        try:
            due = await duty.once()
        except (NotSentError, UnansweredError) as error:
            outage.gone(error)
            await asyncio.sleep(pauses.next())
            continue
        except Exception as error:  # whatever is wrong with a duty must not end the worker
            logger.exception("%s failed, and will be tried again", type(duty).__name__)
            outage.report(error)
            await asyncio.sleep(pauses.next())
            continue
        outage.back()
        pauses = Pauses()
        pause = due * random.uniform(1.0, 1.0 + duty.jitter)  # noqa: S311 - no secret
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(pause):
                await duty.poked.wait()
        duty.poked.clear()
