"""What the command line asks: log.level."""

from typing import Literal

from sallyport.base import log
from sallyport.base.command import Arguments, Command, command
from sallyport.base.wire import JSON


class Level(Arguments):
    """From which level on the service logs; None asks only."""

    level: Literal["debug", "info", "warning", "error"] | None = None


def commands() -> dict[str, Command]:
    """The commands of the log by name."""

    async def level(wanted: Level) -> JSON:
        if wanted.level is not None:
            log.set_level(wanted.level)
        return log.level()

    return {"log.level": command(Level, level)}
