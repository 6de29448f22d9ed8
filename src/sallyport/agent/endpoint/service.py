"""The client of the service for the endpoint agent."""

from typing import Protocol

from sallyport.agent.keys import KeyRing
from sallyport.agent.service import ServiceClient
from sallyport.agentwire.fields import PRIVILEGES, REPORT, ROTATION, STATE
from sallyport.agentwire.report import Poll, PrivilegeStatus, Report, Rotation
from sallyport.base.wire import mapping

_SLACK_S = 30.0
"""Time limit of a request in seconds. For a poll, the waiting time of the poll is added."""


class Service(Protocol):
    """The interface through which the endpoint agent sends requests to the service.

    Each method raises ServiceRefused if the service has not carried out the request, and ServiceAway if it is unknown
    whether the service has carried it out.
    """

    def state(self, poll: Poll) -> object:
        """Send a poll. Return the parsed JSON of the answer."""

    def report(self, report: Report) -> None:
        """Send a report."""

    def privileges(self, status: PrivilegeStatus) -> None:
        """Send a privilege status."""

    def rotation(self, message: Rotation) -> None:
        """Send a step of a password rotation. When this method returns, the service has stored the step."""


class HttpService:
    """The client of the service over HTTPS. ring: the agent's keys. The key is read anew for each request, because it
    may have been renewed."""

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
