"""Who sends datagrams without being known or proven: counted by address in a table of bounded size."""

from dataclasses import dataclass

MAX_SENDERS = 1024


@dataclass(slots=True)
class Sender:
    """An address that sent. Times in microseconds. reason: why its last datagram was of no use."""

    host: str
    packets: int
    first_at: int
    last_at: int
    reason: str


class Senders:
    """The addresses; when the table is full the one that has been silent longest makes room."""

    def __init__(self, *, max_senders: int = MAX_SENDERS) -> None:
        self._max_senders = max_senders
        self._senders: dict[str, Sender] = {}

    def note(self, host: str, reason: str, at: int) -> bool:
        """Count a datagram. True: the address is new, or its last one was of no use for another reason."""
        sender = self._senders.pop(host, None)
        is_new = sender is None or sender.reason != reason
        if sender is None:
            if len(self._senders) >= self._max_senders:
                del self._senders[next(iter(self._senders))]
            sender = Sender(host, 0, at, at, reason)
        sender.packets += 1
        sender.last_at = at
        sender.reason = reason
        self._senders[host] = sender  # a dictionary keeps its order: the last to send is the last in it
        return is_new

    def all(self) -> list[Sender]:
        """Those who sent last come first."""
        return list(reversed(self._senders.values()))
