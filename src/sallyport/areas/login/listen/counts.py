"""The metrics of one exchange. The counter for a combination of labels is looked up only once."""

from enum import Enum

from sallyport.areas.login.decision import NOT_CHECKED
from sallyport.areas.login.login import Decision
from sallyport.metrics import Buckets, Cell, LoginMetrics, RadiusMetrics
from sallyport.radius.packet import (
    ACCESS_ACCEPT,
    ACCESS_CHALLENGE,
    ACCESS_REJECT,
    ACCESS_REQUEST,
    ACCOUNTING_REQUEST,
    ACCOUNTING_RESPONSE,
    CODE_NAMES,
    STATUS_SERVER,
)


class RadiusService(Enum):
    """The kind of RADIUS service on a socket. The value is its label in metrics."""

    AUTHENTICATION = "auth"
    ACCOUNTING = "acct"


class Counts:
    """The counters of one exchange. requests, responses: the counters by packet code. label: the listener's label in
    metrics. If `label` is empty, the label of `kind` is used instead."""

    def __init__(self, kind: RadiusService, label: str, radius: RadiusMetrics, logins: LoginMetrics) -> None:
        self._label = label = label or kind.value
        is_auth = kind is RadiusService.AUTHENTICATION
        self._radius = radius
        self._logins = logins
        taken = (ACCESS_REQUEST if is_auth else ACCOUNTING_REQUEST), STATUS_SERVER
        sent = (ACCESS_ACCEPT, ACCESS_REJECT, ACCESS_CHALLENGE) if is_auth else (ACCOUNTING_RESPONSE,)
        self.requests = {code: radius.requests.cell(label, CODE_NAMES[code]) for code in taken}
        self.responses = {code: radius.responses.cell(label, CODE_NAMES[code]) for code in sent}
        self.rounds = radius.rounds.cell(label)
        radius.listen(label)
        self.duplicates = radius.discards.cell(label, "duplicate")
        self._answers: dict[int, tuple[str, Cell, Buckets]] = {}
        self._decisions: dict[tuple[int, Decision], Cell] = {}

    def discarded(self, reason: str, client: str) -> None:
        """Count a datagram that gets no answer. client: the name of the RADIUS client, or empty if unknown."""
        self._radius.discards.cell(self._label, reason).count += 1
        if client:
            self._radius.clients.cell(client, reason).count += 1

    def decided(self, domain_id: int, decision: Decision) -> None:
        """Count the final decision of a login."""
        cell = self._decisions.get((domain_id, decision))
        if cell is None:
            cell = self._logins.decisions.cell(str(domain_id), decision.mode, decision.outcome)
            self._decisions[domain_id, decision] = cell
        cell.count += 1
        if decision.reason in NOT_CHECKED:
            self._logins.first_failures.cell(str(domain_id), NOT_CHECKED[decision.reason]).count += 1

    def answered(self, client: str, code: int, seconds: float) -> None:
        """Count the first answer to a request, and record its duration."""
        of_answer = self._answers.get(code)
        if of_answer is None:
            name = CODE_NAMES[code]
            of_answer = self._answers[code] = name, self.responses[code], self._radius.seconds.of(name)
        name, of_type, durations = of_answer
        of_type.count += 1
        self._radius.clients.cell(client, name).count += 1  # not cached, because the names of clients can change
        durations.observe(seconds)
