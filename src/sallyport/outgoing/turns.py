"""A few tasks in each turn of the event loop."""

import trio


class Turns:
    """Lets so many tasks go on in each turn of the event loop; the others wait, the first come first.

    A thousand answers that come in the same instant would be read, and what follows from them done, in one turn; and
    a plain login that comes meanwhile would wait for its end.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._left = most
        self._waiting = trio.lowlevel.ParkingLot()
        self._ends = False

    async def take(self) -> None:
        """Go on, in this turn or in a later one."""
        if self._left == 0 or self._waiting:
            await self._waiting.park()
        else:
            self._left -= 1
            self._end_soon()

    def _end_soon(self) -> None:
        if not self._ends:
            self._ends = True
            trio.lowlevel.current_trio_token().run_sync_soon(self._end)

    def _end(self) -> None:
        self._ends = False
        woken = self._waiting.unpark(count=self._most)
        self._left = self._most - len(woken)
        if woken:
            self._end_soon()
