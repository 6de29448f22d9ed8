"""When RADIUS clients have sent requests, as the inventory has heard their addresses."""

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from sallyport.areas.clients.client import ClientTable, State


class Heard(Protocol):
    """When a source address has sent requests, in microseconds; see `devices.rows.Heard`."""

    @property
    def ip_address(self) -> str: ...

    @property
    def last_seen(self) -> int: ...

    @property
    def last_unsigned(self) -> int | None: ...


class Times(NamedTuple):
    """The times of a client's last request and of its last unsigned request, in microseconds; 0 if there was none."""

    seen: int = 0
    unsigned: int = 0

    def is_in(self, state: State, since: int) -> bool:
        """Return whether a client with these times is in a state. since: the beginning of the last day."""
        return 0 < self.seen < since if state is State.SILENT else self.unsigned >= since


NEVER: Final = Times()


def times_of(table: ClientTable, heard: Iterable[Heard]) -> dict[int, Times]:
    """Return the times of those clients that have sent requests, by client id."""
    times = dict[int, Times]()
    for each in heard:
        client = table.look_up(each.ip_address)
        if client is not None:
            before = times.get(client.id, NEVER)
            times[client.id] = Times(max(before.seen, each.last_seen), max(before.unsigned, each.last_unsigned or 0))
    return times
