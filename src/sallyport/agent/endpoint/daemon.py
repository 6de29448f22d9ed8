"""The loop of the agent: it polls for the newest state, applies the state to the host, and reports the result.

A single thread does all the work. Most of the time it waits for the answer to a poll. It also checks the host
periodically, to find changes by admins, and whenever an account expires. If the service does not answer, the last state
remains valid.
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
from sallyport.agentwire.report import PrivilegeStatus, Report
from sallyport.agentwire.state import Settings
from sallyport.base.clock import SECOND, BackOff
from sallyport.base.errors import ConfigError, HostError, ServiceAway, ServiceRefused, WireError
from sallyport.base.text import counted
from sallyport.host.notify import Notifier

POLL_S: Final = 25.0
"""Longest wait of a poll, in seconds. It is shorter than the idle timeout of proxies and the service's heartbeat
interval."""
SOON_S: Final = 5.0
"""First delay before an unfinished rotation or order is tried again, in seconds. The delay grows with each failure."""
_UNSENT: Final = 20
"""Maximum number of messages that are queued while the service cannot be reached. The oldest messages are dropped
first."""


class Stopped(Exception):
    """The exception that ends a wait when the agent must stop."""


class Stop:
    """The handler of SIGTERM and SIGINT. A signal ends a wait at once, but it never interrupts a change of the host."""

    def __init__(self) -> None:
        self.asked = False
        self._waiting = False

    def listen(self) -> None:
        """Install the signal handlers."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.ask)

    def ask(self, number: int = 0, frame: FrameType | None = None) -> None:
        """Make the agent stop: at once if the agent is waiting, otherwise at the beginning of its next wait."""
        self.asked = True
        if self._waiting:
            self._waiting = False
            raise Stopped

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Allow Stopped to interrupt the wait in this block."""
        self._waiting = True
        try:
            if self.asked:
                raise Stopped
            yield
        finally:
            self._waiting = False


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment of the agent. monotonic: a function that returns the monotonic clock, in seconds. pause: a
    function that sleeps for a number of seconds. say: a function that writes a line to the log."""

    systemd: Notifier
    stop: Stop
    monotonic: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep
    say: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True)


def enrolled(enrol: Callable[[], Identity], environment: Environment, *, patient: bool) -> Identity | None:
    """Register the agent, and return its identity. Return None if the agent was told to stop before it was registered.

    patient: whether to retry until the service answers. If it is False, raise ServiceAway when the service does not
    answer. Raises ServiceRefused, ConfigError.
    """
    back_off = BackOff()
    while True:
        try:
            with environment.stop.waiting():
                return enrol()
        except ServiceAway as error:
            if not patient:
                raise
            environment.say(str(error))
            wait_s = back_off.failed(error.after_s)
        except Stopped:
            return None
        environment.systemd.ready("waiting for the service")
        try:
            with environment.stop.waiting():
                environment.pause(min(wait_s, environment.systemd.alive_s or wait_s))
        except Stopped:
            return None
        environment.systemd.alive()


class Daemon:
    """The loop of the agent. ring: the API keys of the agent, or None if the key is not renewed."""

    def __init__(
        self,
        endpoint: Endpoint,
        service: Service,
        ring: KeyRing | None,
        environment: Environment,
        back_off: BackOff | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._service = service
        self._ring = ring
        self._environment = environment
        self._back_off = back_off or BackOff()
        self._again = BackOff(first_s=SOON_S, chance=lambda: 0.0)
        self._again_at = 0.0
        self._unsent: deque[Report | PrivilegeStatus] = deque(maxlen=_UNSENT)
        self._passed_at: float | None = None
        self._looked_at: float | None = None
        self._last_error = ""

    def run(self) -> None:
        """Run until the agent is stopped. Raises ConfigError if the agent's own files are missing."""
        self._environment.systemd.ready("starting")
        try:
            while True:
                self._environment.systemd.alive()
                self.turn()
        except Stopped:
            self._environment.systemd.stopping()

    def once(self) -> int:
        """Poll, apply the state and report, once. Return the exit status: 0 if nothing failed, else 1.

        Raises ServiceAway, ServiceRefused or WireError if the poll failed. In this case, the state on disk was applied.
        """
        error: ServiceAway | ServiceRefused | WireError | None = None
        try:
            self._endpoint.poll(0)
        except (ServiceAway, ServiceRefused, WireError) as failure:
            error = failure
        failures = self._act()
        if error is not None:
            raise error
        return 0 if self._send_queued() == 0.0 and not failures else 1

    def turn(self) -> None:
        """Poll once. Apply the state if it is new or if a check is due, and report. Raises Stopped."""
        news, wait_s = False, 0.0
        try:
            with self._environment.stop.waiting():
                if self._ring is not None:
                    self._ring.renew_when_due()
                news = self._endpoint.poll(int(self._may_wait_s()))
        except (ServiceAway, WireError, ConfigError) as error:
            wait_s = self._back_off.failed(error.after_s if isinstance(error, ServiceAway) else 0.0)
            self._log_once(str(error))
        except ServiceRefused as error:
            wait_s = self._back_off.failed()
            self._log_once(f"the service refuses the agent: {error}")
            if self._ring is not None:
                self._ring.refused(error)
        else:
            self._log_recovery()
        if news or self._until_due_s() <= 0 or (not wait_s and self._until_again_s() <= 0):
            self._act()
        if not wait_s:
            wait_s = self._send_queued()
        if wait_s:
            self._wait(min(wait_s, max(self._until_due_s(), 0.0)))

    # --- when -------------------------------------------------------------------------------------------------

    def _settings(self) -> Settings:
        return self._endpoint.state.settings if self._endpoint.state else Settings()

    def _until_due_s(self) -> float:
        """Return the seconds until the next check of the host is due."""
        if self._passed_at is None:
            return 0.0
        due = self._passed_at + self._settings().privilege_s - self._environment.monotonic()
        expiry = self._endpoint.next_expiry()
        return due if expiry is None else min(due, (expiry - self._endpoint.now()) / SECOND)

    def _until_again_s(self) -> float:
        """Return the seconds until an unfinished rotation or order is tried again."""
        return self._again_at - self._environment.monotonic() if self._endpoint.is_unfinished else POLL_S

    def _may_wait_s(self) -> float:
        if self._endpoint.state is None or self._passed_at is None or self._unsent:
            return 0.0
        longest = max(0.0, min(POLL_S, self._until_again_s()))
        watchdog_s = self._environment.systemd.alive_s
        return max(0.0, min(longest, self._until_due_s(), *(() if watchdog_s is None else (watchdog_s / 2,))))

    def _wait(self, seconds: float) -> None:
        """Wait, and notify systemd's watchdog during the wait. Raises Stopped."""
        until = self._environment.monotonic() + seconds
        step_s = self._environment.systemd.alive_s or POLL_S
        while (left := until - self._environment.monotonic()) > 0:
            self._environment.systemd.alive()
            with self._environment.stop.waiting():
                self._environment.pause(min(left, step_s))

    # --- applying and reporting -------------------------------------------------------------------------------

    def _act(self) -> int:
        """Apply the state to the host. Return the number of failed actions."""
        now = self._environment.monotonic()
        look = self._looked_at is None or now - self._looked_at >= self._settings().discover_s
        try:
            messages = self._endpoint.run(look=look)
        except (HostError, ConfigError) as error:
            self._passed_at = now
            self._environment.say(f"the state of the host cannot be read: {error}")
            return 1
        self._passed_at = self._environment.monotonic()
        if self._endpoint.is_unfinished:
            self._again_at = self._passed_at + self._again.failed()
        else:
            self._again.worked()
        if messages is None:
            return 0
        report, status = messages
        self._looked_at = now if report.discovery is not None else self._looked_at
        for action in report.actions:
            failed = f": {action.error}" if action.error else ""
            self._environment.say(f"{action.kind} {action.name} {action.detail}".rstrip() + failed)
        # The newest status replaces older ones.
        self._unsent = deque((each for each in self._unsent if isinstance(each, Report)), maxlen=_UNSENT)
        self._unsent.extend((report, status))
        failures = sum(1 for action in report.actions if action.error)
        self._environment.systemd.status(
            f"{counted(len(report.managed), 'account')}, {counted(failures, 'failure')}, state {report.version}"
        )
        return failures

    def _send_queued(self) -> float:
        """Send the queued messages. Return the seconds until the next attempt, or 0 if the queue is empty. Raises
        Stopped."""
        while self._unsent:
            message = self._unsent[0]
            try:
                with self._environment.stop.waiting():
                    if isinstance(message, Report):
                        self._service.report(message)
                    else:
                        self._service.privileges(message)
            except ServiceAway as error:
                self._log_once(str(error))
                return self._back_off.failed(error.after_s)
            except ServiceRefused as error:
                self._environment.say(f"the service refuses a report: {error}")
            self._unsent.popleft()
        self._back_off.worked()
        return 0.0

    def _log_once(self, what: str) -> None:
        """Log an error, unless it equals the last logged error."""
        if what != self._last_error:
            self._environment.say(what)
            self._environment.systemd.status(what)
        self._last_error = what

    def _log_recovery(self) -> None:
        if self._last_error:
            self._environment.say("the service answers again")
            self._again.worked()
            self._again_at = 0.0
        self._last_error = ""
