"""How many entries the next transaction of the journal may have.

A running transaction delays the logins of all tenants, so it must be short. How long an entry takes depends on the
engine, on the machine and on the entry: an accounting record takes longer than a login, and PostgreSQL longer than the
embedded database. So the room follows the times of the latest transactions.
"""

from typing import Final

MAX_ENTRIES: Final = 1000
"""Maximum number of entries in a transaction. An entry counts as 1 + `LONG` entries if its device or station is new to
the store. So does an accounting record that ends all sessions of a device, and a login with a limit of parallel
sessions."""
LONG: Final = 16
LEAST: Final = 100
"""The smallest room. With fewer entries, the commits would take most of the time."""
SHORT_S: Final = 0.05
"""The time in seconds that the statements of a transaction may take. A login of another tenant waits for the running
transaction and for its own."""


class Room:
    """The room of the next transaction. entries: its maximum number of entries."""

    def __init__(self) -> None:
        self.entries = MAX_ENTRIES

    def note(self, entries: int, seconds: float) -> None:
        """Record a transaction: the entries that it counts as, and how long its statements took."""
        if seconds > SHORT_S:
            self.entries = max(LEAST, min(self.entries, int(entries * SHORT_S / seconds)))
        elif entries >= self.entries:
            self.entries = min(MAX_ENTRIES, self.entries * 5 // 4)
