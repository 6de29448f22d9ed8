"""The service, as the endpoint agent uses it."""

from typing import Protocol

from sallyport.agent.keys import KeyRing
from sallyport.agent.service import ServiceClient
from sallyport.base.agentwire.fields import PRIVILEGES, REPORT, ROTATION, STATE
from sallyport.base.agentwire.report import Poll, PrivilegeStatus, Report, Rotation
from sallyport.base.wire import mapping

_SLACK_S = 30.0
"""Time limit of an answer, in addition to the wait of a poll."""


class Service(Protocol):
    """The service. Each method raises ServiceAway (the outcome is not known) or ServiceRefused (it was not done)."""

    def state(self, poll: Poll) -> object:
        """Return the answer to a poll, in JSON's types."""

    def report(self, report: Report) -> None:
        """Send a report."""

    def privileges(self, status: PrivilegeStatus) -> None:
        """Send a privilege status."""

    def rotation(self, message: Rotation) -> None:
        """Send a step of a rotation; the service has stored it when this returns."""


class HttpService:
    """The service over HTTPS. ring: the agent's key, looked up for each request, since it is renewed."""

    def __init__(self, posts: ServiceClient, ring: KeyRing) -> None:
        self._posts = posts
        self._ring = ring

    def state(self, poll: Poll) -> object:
        return self._post(STATE, poll, poll.wait_s + _SLACK_S)

    def report(self, report: Report) -> None:
        self._post(REPORT, report)

    def privileges(self, status: PrivilegeStatus) -> None:
        self._post(PRIVILEGES, status)

    def rotation(self, message: Rotation) -> None:
        self._post(ROTATION, message)

    def _post(self, path: str, message: object, timeout_s: float = _SLACK_S) -> dict[str, object]:
        return self._posts.post(path, mapping(message), key=self._ring.key, timeout_s=timeout_s)
