"""Test a domain's first factor with a name and a password, and report each step to an admin.

The test sends the same attributes as a device. No login is recorded, no second factor is asked for, and the inventory
remains unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from secrets import token_bytes
from typing import Final

import structlog

from sallyport.areas.domains.domain import Domain, FirstFactor
from sallyport.areas.login.decision import LOCKED
from sallyport.areas.login.first.password import check_password, ends_in_code
from sallyport.areas.login.first.winbind.checker import hashed_name
from sallyport.areas.login.identity import identify
from sallyport.areas.login.login import Login, Reason
from sallyport.areas.login.pipeline import Pipeline
from sallyport.areas.login.simulated import client_of, simulated
from sallyport.base.clock import Clock
from sallyport.base.errors import Conflict, invalid_field
from sallyport.base.fair import PerMinute
from sallyport.nodes.notices import Notices
from sallyport.radius.attributes import NAS_IDENTIFIER, USER_NAME, USER_PASSWORD, push_attribute
from sallyport.radius.mschap import MsChap2, challenge_response, nt_hash, push_attempt
from sallyport.radius.password import MAX_PASSWORD, Method, hide_password

SOURCE: Final = ("127.0.0.1", 0)
DEVICE: Final = b"sallyport"
MAX_NAME: Final = 253
PER_MINUTE: Final = 5
"""Maximum number of tests per minute and domain over HTTP. The limit keeps callers from guessing passwords."""

_NOTICE: Final = "trial"

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The result of a test. reason: the result; NONE if the password is correct. steps: the steps in order, in
    words."""

    reason: Reason
    steps: tuple[str, ...]

    @property
    def message(self) -> str:
        """The last step, which contains the result."""
        return self.steps[-1]


class Trials:
    """Tests of first factors.

    steps: the pipeline. notices: the messages between nodes. With them, the limit applies to the tests of all nodes
    together.
    """

    def __init__(self, steps: Pipeline, notices: Notices, clock: Clock) -> None:
        self._steps = steps
        self._clock = clock
        self._admitted = PerMinute[int](PER_MINUTE, "trials", clock, tell=partial(notices.send, _NOTICE))
        notices.receive(_NOTICE, lambda values, age_us: self._admitted.count(int(str(values[0])), clock() - age_us))

    def admit(self, domain: Domain) -> None:
        """Count a test against the domain's limit. Raises TooMany if the limit per minute is reached."""
        self._admitted.admit(domain.id)

    async def run(self, domain: Domain, user: str, password: bytes, *, mschap: bool = False) -> TrialResult:
        """Check a name and a password. mschap: send MS-CHAPv2 instead of PAP.

        Raises Conflict if the domain's first factor is `none` or `web`, because these factors check no password. Raises
        Invalid, StoreError, SecretError.
        """
        if domain.first_factor is FirstFactor.NONE:
            raise Conflict("the domain's first factor is none: the forwarding server checks the passwords")
        if domain.first_factor is FirstFactor.WEB:
            raise Conflict(
                "the domain's first factor is web: no password is checked; test the rules (rule test) and the MFA "
                "provider (provider check) instead"
            )
        login = self._login(domain, user, password, mschap)
        steps: list[str] = []
        reason = await self._steps.first.while_running(partial(self._reason, login, domain, steps))
        steps.append(_described(login, reason))
        log.info("first_factor_tried", domain=domain.id, user=login.user, reason=reason.value)
        return TrialResult(reason, tuple(steps))

    async def _reason(self, login: Login, domain: Domain, steps: list[str]) -> Reason:
        reason = identify(login, self._steps.domains.value)
        if reason is not Reason.NONE:
            return reason
        steps.append(
            f"the user is {login.user} in the domain {domain.name}; the domain's first factor is {domain.first_factor}"
        )
        if lock := self._steps.lockouts.refuses(login.attempt(domain)):
            steps.append(f"a login of this user is refused now: {LOCKED[lock]}")

        carries_code = ends_in_code(login.arrival, login.method) and await self._steps.has_codes(domain, login.user)

        def takes_code() -> bool:
            return carries_code

        if domain.first_factor is FirstFactor.LOCAL:
            user = await self._steps.users.load(domain.id, login.user)
            result = check_password(login.arrival, login.method, user, takes_code)
        else:
            result = await self._steps.first.check(login, domain, takes_code, steps.append)
        login.take_first(result)
        return result.reason

    def _login(self, domain: Domain, user: str, password: bytes, mschap: bool) -> Login:
        """Return a login as a RADIUS client of this domain would send it. Raises Invalid if the name or password is too
        long for RADIUS."""
        name = user.encode()
        if not 1 <= len(name) <= MAX_NAME:
            raise invalid_field("userName", f"must be text of 1 to {MAX_NAME} octets")
        if len(password) > MAX_PASSWORD:
            raise invalid_field("password", f"must be text of at most {MAX_PASSWORD} octets")
        client, authenticator = client_of(domain, "a trial"), token_bytes(16)
        body = push_attribute(USER_NAME, name) + push_attribute(NAS_IDENTIFIER, DEVICE)
        if mschap:
            body += _responded(name, password)
        else:
            body += push_attribute(USER_PASSWORD, hide_password(password, client.secret, authenticator))
        method = Method.MSCHAP2 if mschap else Method.PAP
        return simulated(client, SOURCE[0], body, authenticator, method, self._clock())


def _responded(name: bytes, password: bytes) -> bytes:
    attempt = MsChap2(0, token_bytes(16), token_bytes(16), b"")
    response = challenge_response(attempt.nt_challenge(hashed_name(name)), nt_hash(password))
    return push_attempt(attempt._replace(response=response))


def _described(login: Login, reason: Reason) -> str:
    if reason is not Reason.NONE:
        return f"refused: {reason}"
    if login.found.challenge is not None:
        return "undecided: the first factor sent a challenge, which this test does not answer"
    parts = ["the password is right"]
    if login.code is not None:
        parts.append("with a code behind it")
    if login.found.groups:
        parts.append(f"groups: {', '.join(sorted(login.found.groups))}")
    if login.found.ous:
        parts.append(f"units: {', '.join(sorted(login.found.ous))}")
    return "; ".join(parts)
