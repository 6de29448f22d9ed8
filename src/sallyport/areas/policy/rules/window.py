"""The time of day of a login rule."""

from dataclasses import dataclass
from typing import Final

from sallyport.base.wire import JSON

DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
MIDNIGHT: Final = "00:00"
END_OF_DAY: Final = "24:00"


def minutes(clock: str) -> int:
    """Return a time `HH:MM` as minutes since midnight."""
    hours, _, rest = clock.partition(":")
    return int(hours) * 60 + int(rest)


@dataclass(frozen=True, slots=True)
class Window:
    """A time of day on certain days. If `until` is not later than `start`, the window ends on the next day.

    days: the entries of DAYS, the days on which the window starts. If `days` is empty, the window starts every day.
    start, until: the times as `HH:MM`; `until` is exclusive. timezone: a name of the IANA database.
    """

    days: tuple[str, ...] = ()
    start: str = MIDNIGHT
    until: str = END_OF_DAY
    timezone: str = "UTC"

    @property
    def always(self) -> bool:
        """Whether the window covers every minute of the week."""
        return len(self.days) in (0, len(DAYS)) and minutes(self.start) == 0 and minutes(self.until) == 1440

    def as_json(self) -> dict[str, JSON]:
        """Return the fields by their API names."""
        return {"days": list(self.days), "from": self.start, "until": self.until, "timezone": self.timezone}
