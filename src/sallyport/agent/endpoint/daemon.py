"""The agent that runs all the time: asks for the newest state, makes the host so, and tells what it did.

One thread does one thing after the other. It mostly waits for the service's answer to a poll, and looks at the host by
itself: when an account expires, and every so often for what others changed. Whatever the service answers, or if it
does not, the last state goes on to hold.
"""

import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Final

from sallyport.agent.endpoint.agent import Endpoint
from sallyport.agent.endpoint.identity import Identity
from sallyport.agent.endpoint.service import Service
from sallyport.agent.keys import KeyRing
from sallyport.agent.service import BackOff
from sallyport.base.agentwire.report import PrivilegeStatus, Report
from sallyport.base.agentwire.state import Settings
from sallyport.base.clock import SECOND
from sallyport.base.errors import ConfigError, HostError, ServiceAway, ServiceRefused, WireError
from sallyport.base.notify import Notifier

POLL_S: Final = 25.0
"""How long the service may wait for a newer state: below what proxies take for dead, and twice as often as the
service's heartbeat needs."""
SOON_S: Final = 5.0
"""When something is left to be done that the service or the host did not take; later each time, if it does not help."""
_UNSENT: Final = 20
"""Reports that are kept until the service is there again; the newest says what matters."""


class Stopped(Exception):
    """The agent was told to end."""


class Stop:
    """SIGTERM and SIGINT. What is being done to the host is done to its end; waiting ends at once."""

    def __init__(self) -> None:
        self.asked = False
        self._waiting = False

    def listen(self) -> None:
        """Take the process's signals."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.ask)

    def ask(self, number: int = 0, frame: FrameType | None = None) -> None:
        """End, now or when what is being done is done."""
        self.asked = True
        if self._waiting:
            self._waiting = False
            raise Stopped

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """What is waited for may be broken off by Stopped."""
        self._waiting = True
        try:
            if self.asked:
                raise Stopped
            yield
        finally:
            self._waiting = False


@dataclass(frozen=True, slots=True)
class Around:
    """What is around the agent. monotonic: seconds; pause: waits for so many; say: writes a line of the log."""

    systemd: Notifier
    stop: Stop
    monotonic: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep
    say: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True)


def enrolled(enrol: Callable[[], Identity], around: Around, *, patient: bool) -> Identity | None:
    """Who the agent is, as soon as the service says so. patient: wait for it; None: told to end meanwhile.

    ServiceAway: not patient. ServiceRefused, ConfigError.
    """
    back_off = BackOff()
    while True:
        try:
            with around.stop.waiting():
                return enrol()
        except ServiceAway as error:
            if not patient:
                raise
            around.say(str(error))
            wait_s = back_off.failed(error.after_s)
        except Stopped:
            return None
        around.systemd.ready("waits for the service")
        try:
            with around.stop.waiting():
                around.pause(min(wait_s, around.systemd.alive_s or wait_s))
        except Stopped:
            return None
        around.systemd.alive()


class Daemon:
    """The loop. ring: the agent's key; None where nobody renews it."""

    def __init__(
        self,
        endpoint: Endpoint,
        service: Service,
        ring: KeyRing | None,
        around: Around,
        back_off: BackOff | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._service = service
        self._ring = ring
        self._around = around
        self._back_off = back_off or BackOff()
        self._again = BackOff(first_s=SOON_S, chance=lambda: 0.0)
        self._again_at = 0.0
        self._unsent: deque[Report | PrivilegeStatus] = deque(maxlen=_UNSENT)
        self._passed_at: float | None = None
        self._looked_at: float | None = None
        self._trouble = ""

    def run(self) -> None:
        """Until the agent is told to end. ConfigError: its own files are gone."""
        self._around.systemd.ready("starting")
        try:
            while True:
                self._around.systemd.alive()
                self.turn()
        except Stopped:
            self._around.systemd.stopping()

    def once(self) -> int:
        """Ask, act, tell, end: 0 if everything was done. ServiceAway, ServiceRefused, WireError: it was not asked, and
        the state at hand was made to hold."""
        error: ServiceAway | ServiceRefused | WireError | None = None
        try:
            self._endpoint.poll(0)
        except (ServiceAway, ServiceRefused, WireError) as failure:
            error = failure
        failures = self._act()
        if error is not None:
            raise error
        return 0 if self._tell() == 0.0 and not failures else 1

    def turn(self) -> None:
        """Ask once; act if there is a reason to; tell. Stopped."""
        news, wait_s = False, 0.0
        try:
            with self._around.stop.waiting():
                if self._ring is not None:
                    self._ring.renew_when_due()
                news = self._endpoint.poll(int(self._may_wait_s()))
        except (ServiceAway, WireError, ConfigError) as error:
            wait_s = self._back_off.failed(error.after_s if isinstance(error, ServiceAway) else 0.0)
            self._troubled(str(error))
        except ServiceRefused as error:
            wait_s = self._back_off.failed()
            self._troubled(f"the service refuses the agent: {error}")
            if self._ring is not None:
                self._ring.refused(error)
        else:
            self._untroubled()
        if news or self._until_due_s() <= 0 or (not wait_s and self._until_again_s() <= 0):
            self._act()
        if not wait_s:
            wait_s = self._tell()
        if wait_s:
            self._wait(min(wait_s, max(self._until_due_s(), 0.0)))

    # --- when -------------------------------------------------------------------------------------------------

    def _settings(self) -> Settings:
        return self._endpoint.state.settings if self._endpoint.state else Settings()

    def _until_due_s(self) -> float:
        """Until the host is to be looked at whatever the service says."""
        if self._passed_at is None:
            return 0.0
        due = self._passed_at + self._settings().privilege_s - self._around.monotonic()
        expiry = self._endpoint.next_expiry()
        return due if expiry is None else min(due, (expiry - self._endpoint.now()) / SECOND)

    def _until_again_s(self) -> float:
        """Until what is left to be done is tried once more."""
        return self._again_at - self._around.monotonic() if self._endpoint.is_unfinished else POLL_S

    def _may_wait_s(self) -> float:
        if self._endpoint.state is None or self._passed_at is None or self._unsent:
            return 0.0
        longest = max(0.0, min(POLL_S, self._until_again_s()))
        watchdog_s = self._around.systemd.alive_s
        return max(0.0, min(longest, self._until_due_s(), *(() if watchdog_s is None else (watchdog_s / 2,))))

    def _wait(self, seconds: float) -> None:
        """Wait, while systemd sees that the agent lives. Stopped."""
        until = self._around.monotonic() + seconds
        step_s = self._around.systemd.alive_s or POLL_S
        while (left := until - self._around.monotonic()) > 0:
            self._around.systemd.alive()
            with self._around.stop.waiting():
                self._around.pause(min(left, step_s))

    # --- acting and telling -----------------------------------------------------------------------------------

    def _act(self) -> int:
        """Make the host so: how much was not done."""
        now = self._around.monotonic()
        look = self._looked_at is None or now - self._looked_at >= self._settings().discover_s
        try:
            told = self._endpoint.run(look=look)
        except (HostError, ConfigError) as error:
            self._passed_at = now
            self._around.say(f"the host cannot be looked at: {error}")
            return 1
        self._passed_at = self._around.monotonic()
        if self._endpoint.is_unfinished:
            self._again_at = self._passed_at + self._again.failed()
        else:
            self._again.worked()
        if told is None:
            return 0
        report, status = told
        self._looked_at = now if report.discovery is not None else self._looked_at
        for action in report.actions:
            failed = f": {action.error}" if action.error else ""
            self._around.say(f"{action.kind} {action.name} {action.detail}".rstrip() + failed)
        # The newest status says all that an older one does.
        self._unsent = deque((each for each in self._unsent if isinstance(each, Report)), maxlen=_UNSENT)
        self._unsent.extend((report, status))
        failures = sum(1 for action in report.actions if action.error)
        self._around.systemd.status(f"{len(report.managed)} accounts, {failures} failures, state {report.version}")
        return failures

    def _tell(self) -> float:
        """Send what is not sent: how long to wait before it is tried again, 0 if all is sent. Stopped."""
        while self._unsent:
            message = self._unsent[0]
            try:
                with self._around.stop.waiting():
                    if isinstance(message, Report):
                        self._service.report(message)
                    else:
                        self._service.privileges(message)
            except ServiceAway as error:
                self._troubled(str(error))
                return self._back_off.failed(error.after_s)
            except ServiceRefused as error:
                self._around.say(f"the service refuses a report: {error}")
            self._unsent.popleft()
        self._back_off.worked()
        return 0.0

    def _troubled(self, what: str) -> None:
        """Say it once, not at each attempt."""
        if what != self._trouble:
            self._around.say(what)
            self._around.systemd.status(what)
        self._trouble = what

    def _untroubled(self) -> None:
        if self._trouble:
            self._around.say("the service answers again")
            self._again.worked()
            self._again_at = 0.0
        self._trouble = ""
