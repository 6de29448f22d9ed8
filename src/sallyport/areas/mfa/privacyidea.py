"""The provider for privacyIDEA. It supports OTP tokens, codes by mail or SMS, and push.

    start   triggerchallenge {user, realm}              WAITING for a push, CODE for a code, otherwise NOT_ENROLLED
    poll    polltransaction, then check {transaction}   the check consumes the approval; each approval admits one login
    verify  check {user, realm, pass [, transaction]}   ACCEPT, REJECT, DECLINED, or CHALLENGE for another code

/validate/polltransaction and /validate/check need no authentication. With an admin token, the provider also uses
/validate/triggerchallenge and /token.

Without an admin token, a check with an empty password starts the challenge. This triggers only tokens without a PIN;
for other tokens privacyIDEA counts a failure. The provider then cannot find out which users are enrolled.

A handle is the id of the transaction. For a push, the user's name follows, because the final check needs both.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Final, NamedTuple
from urllib.parse import quote

from sallyport.areas.mfa.fields import Fields, PrivacyIdeaFields
from sallyport.areas.mfa.host import Host, Once
from sallyport.areas.mfa.provider import CHECK_USER, Answer, Code, Enrolment, Outcome, ProviderError, Question
from sallyport.base.bounded import BoundedMap
from sallyport.outgoing.http import json_object, member, text_at

_REMEMBERED: Final = 10_000
_PLAIN_TEXT: Final = "A code can only be checked with PAP."
_MAX_TEXT_LENGTH: Final = 200  # a Reply-Message holds 253 octets
_MAX_CODE_LENGTH: Final = 128  # the longest User-Password (RFC 2865 section 5.2)
# An OTP has 6 to 8 digits. If three or more characters precede the last six digits, they contain a PIN.
_PIN_AND_OTP: Final = re.compile(r".{3,}[0-9]{6}", re.DOTALL)
_TRANSACTION: Final = re.compile(r"[0-9A-Za-z_-]{1,100}")

# Error codes of privacyIDEA (privacyidea/lib/error.py).
_NO_SUCH_USER: Final = 904
# Refusals that concern the user: a policy forbids the login (303), or the token is locked or revoked (1007).
_FORBIDDEN: Final = frozenset({303, 1007})

_JUDGED: Final = {"ACCEPT": Outcome.APPROVED, "REJECT": Outcome.WRONG_CODE, "DECLINED": Outcome.NOT_ME}
_NO_WAY_ON: Final = Answer(Outcome.DENIED)
_VERDICTS: Final = frozenset({*_JUDGED, "CHALLENGE"})
_POLLED: Final = {"pending": Outcome.WAITING, "declined": Outcome.NOT_ME, "cancelled": Outcome.DENIED}
# The token types that are no second factor for logins, and the roll-out states in which a token can be used.
_NO_FACTOR: Final = frozenset({"sshkey", "certificate"})
_ROLLED_OUT: Final = frozenset({"", "enrolled"})
# The client mode by token type, because older servers do not send it. A challenge for a browser cannot be answered over
# RADIUS.
_MODES: Final = {"push": "poll", "tiqr": "poll", "webauthn": "webauthn", "passkey": "webauthn", "u2f": "u2f"}


class _Reply(NamedTuple):
    """An answer of privacyIDEA. error: the error code, or 0 if there is no error."""

    document: Mapping[str, object]
    error: int = 0


class PrivacyIdea:
    """The provider for a privacyIDEA server."""

    name: ClassVar[str] = "privacyidea"
    fields: ClassVar[type[Fields]] = PrivacyIdeaFields
    asks_for_codes: ClassVar[bool] = True

    def __init__(self, fields: Fields, host: Host) -> None:
        assert isinstance(fields, PrivacyIdeaFields)  # noqa: S101  the caller made it with `fields`
        self._client = host.http(fields.url, headers={"Accept": "application/json"})
        self._realm = {"realm": fields.realm} if fields.realm else {}
        # privacyIDEA expects the token without an authentication scheme. Only requests that need the token contain it.
        self._admin = {"Authorization": fields.adminToken.get_secret_value()} if fields.adminToken else None
        self._once = Once()
        self._spent = BoundedMap[str, None](_REMEMBERED)

    async def enrolled(self, user: str) -> Enrolment:
        """Return whether the user has a token that can be used. This starts no challenge. Without an admin token the
        result is UNKNOWN."""
        if self._admin is None or not user:  # without a name the server would list the tokens of all users
            return Enrolment.UNKNOWN
        # The entry of a push token contains its keys, 10 KiB. So a page of 15 entries does not exceed the length limit
        # of answers.
        params = {"user": user, **self._realm, "active": "True", "pagesize": "15"}
        reply = await self._as_admin("GET", "/token/", params=params)
        if reply.error == _NO_SUCH_USER:
            return Enrolment.NOT_ENROLLED
        _check(reply)
        tokens = member(reply.document, "result", "value", "tokens")
        if not isinstance(tokens, list):
            raise ProviderError("privacyIDEA answered without a list of tokens")
        return Enrolment.ENROLLED if any(map(_is_usable, tokens)) else Enrolment.NOT_ENROLLED

    async def check(self) -> str:
        """Check that the server answers, by asking for a transaction that does not exist. With an admin token, also
        check the token by asking for a list of tokens."""
        _check(await self._ask("GET", "/validate/polltransaction/0"))
        if self._admin is None:
            return "privacyIDEA answers, but without an adminToken it cannot be asked about enrolments"
        await self.enrolled(CHECK_USER)
        return "privacyIDEA answers and accepts the adminToken"

    async def start(self, question: Question) -> Answer:
        """Start a challenge with the user's tokens."""
        return await self._once.start(question.challenge_id, lambda: self._begin(question.user))

    async def poll(self, handle: str) -> Answer:
        """Ask whether the user has answered on the phone. If the user has approved, consume the approval.

        The server also answers `pending` for a transaction that it has forgotten. Then the caller's deadline ends the
        wait.
        """
        transaction, user = _parts(handle)
        if transaction in self._spent:
            return Answer(Outcome.APPROVED)
        reply = await self._ask("GET", f"/validate/polltransaction/{quote(transaction, safe='')}")
        _check(reply)
        accepted = member(reply.document, "result", "value")
        status = text_at(reply.document, "detail", "challenge_status")
        # Older servers send no status.
        if not isinstance(accepted, bool) or status not in ({"accept", ""} if accepted else {*_POLLED, ""}):
            raise ProviderError("privacyIDEA answered with an invalid challenge_status")
        if not accepted:
            outcome = _POLLED.get(status, Outcome.WAITING)
            return Answer(outcome, handle=handle if outcome is Outcome.WAITING else "")
        return await self._spend(transaction, user)

    async def verify(self, question: Question, code: Code, handle: str) -> Answer:
        """Check a typed text: a code, or a PIN followed by a code."""
        if code.text is None:
            return Answer(Outcome.WRONG_CODE, text=_PLAIN_TEXT)
        typed = code.text.strip()
        # An empty password would trigger a challenge instead.
        if not typed.isprintable() or not 0 < len(typed) <= _MAX_CODE_LENGTH:
            return Answer(Outcome.WRONG_CODE)
        if not handle:
            return _judged(await self._validate(question.user, typed))
        transaction, _ = _parts(handle)
        answer = _judged(await self._validate(question.user, typed, transaction))
        if answer.outcome is Outcome.WRONG_CODE and _PIN_AND_OTP.fullmatch(typed):
            # In a transaction the server expects only the code, but users may type their PIN before it, as in other
            # logins.
            answer = _judged(await self._validate(question.user, typed))
        # The challenge remains pending for another try.
        return replace(answer, handle=handle) if answer.outcome is Outcome.WRONG_CODE else answer

    async def cancel(self, handle: str) -> None:
        """Cancel the challenge, so that a late approval has no effect.

        This needs an admin token with the right cancelchallenge, and a new enough server. Otherwise the challenge just
        expires.
        """
        if self._admin is not None and handle:
            transaction, _ = _parts(handle)
            path = f"/token/challenges/transaction/{quote(transaction, safe='')}"
            await self._client.delete(path, headers=self._admin)

    async def aclose(self) -> None:
        """Close connections."""
        await self._client.aclose()

    async def _begin(self, user: str) -> Answer:
        if self._admin is None:
            return await self._begin_unasked(user)
        reply = await self._as_admin("POST", "/validate/triggerchallenge", data={"user": user, **self._realm})
        if reply.error == _NO_SUCH_USER:
            return Answer(Outcome.NOT_ENROLLED)
        _check(reply)
        triggered = member(reply.document, "result", "value")
        if not isinstance(triggered, int) or isinstance(triggered, bool):
            raise ProviderError("privacyIDEA does not return the number of triggered challenges")
        if triggered > 0:
            return _challenge(reply, user) or Answer(Outcome.NOT_ENROLLED)
        # The server triggers no challenge if the user has no tokens, or only tokens without challenges.
        enrolled = await self.enrolled(user)
        return Answer(Outcome.CODE if enrolled is Enrolment.ENROLLED else Outcome.NOT_ENROLLED)

    async def _begin_unasked(self, user: str) -> Answer:
        reply = await self._validate(user, "")
        answer = _judged(reply)
        if answer.outcome is Outcome.WRONG_CODE:
            return Answer(Outcome.CODE)
        if answer.outcome is Outcome.CODE:
            return _challenge(reply, user) or answer
        return answer

    async def _spend(self, transaction: str, user: str) -> Answer:
        """Consume the approval. The server then deletes the approval, so a later poll of the same transaction gets the
        result from this provider's cache."""
        reply = await self._validate(user, "", transaction)
        if reply.error and reply.error not in _FORBIDDEN:
            _check(reply)
        if reply.error or _verdict(reply) != "ACCEPT":
            # A simultaneous poll has spent the approval, it was used elsewhere, or a policy requires more.
            return Answer(Outcome.APPROVED if transaction in self._spent else Outcome.DENIED)
        self._spent.put(transaction, None)
        return Answer(Outcome.APPROVED)

    async def _validate(self, user: str, typed: str, transaction: str = "") -> _Reply:
        form = {"user": user, **self._realm, "pass": typed}
        if transaction:
            form["transaction_id"] = transaction
        return await self._ask("POST", "/validate/check", data=form)

    async def _as_admin(
        self, method: str, path: str, *, params: Mapping[str, str] | None = None, data: Mapping[str, str] | None = None
    ) -> _Reply:
        response = await self._client.request(method, path, params=params, data=data, headers=self._admin)
        if response.status_code in {401, 403}:
            what = "does not accept the adminToken" if response.status_code == 401 else "denies the adminToken a right"
            raise ProviderError(f"privacyIDEA {what} (HTTP {response.status_code})")
        return _reply(response.status_code, json_object(response))

    async def _ask(self, method: str, path: str, *, data: Mapping[str, str] | None = None) -> _Reply:
        response = await self._client.request(method, path, data=data)
        return _reply(response.status_code, json_object(response))


def _reply(status: int, document: Mapping[str, object]) -> _Reply:
    """Parse an answer. Raises ProviderError if it is neither a result nor an error of privacyIDEA."""
    succeeded = member(document, "result", "status")
    error = member(document, "result", "error", "code")
    if succeeded is True and status == 200:
        return _Reply(document)
    if succeeded is False and isinstance(error, int) and error > 0:
        return _Reply(document, error)
    raise ProviderError(f"privacyIDEA answered HTTP {status} without a result")


def _check(reply: _Reply) -> None:
    if reply.error:
        # The error text is left out, because it may quote the request.
        raise ProviderError(f"privacyIDEA answered error {reply.error}")


def _verdict(reply: _Reply) -> str:
    """Return the result of /validate/check: ACCEPT, REJECT, CHALLENGE or DECLINED. Raises ProviderError if the result
    is none of these."""
    value = member(reply.document, "result", "value")
    said = member(reply.document, "result", "authentication")
    if said is None and isinstance(value, bool):  # older servers do not send it
        refused = "CHALLENGE" if text_at(reply.document, "detail", "transaction_id") else "REJECT"
        said = "ACCEPT" if value else refused
    if not isinstance(said, str) or said not in _VERDICTS or value is not (said == "ACCEPT"):
        raise ProviderError("privacyIDEA answered a check with an invalid result")
    return said


def _judged(reply: _Reply) -> Answer:
    """Convert the result of checking a typed text into an Answer."""
    if reply.error == _NO_SUCH_USER:
        return Answer(Outcome.NOT_ENROLLED)
    if reply.error in _FORBIDDEN:
        # This is not a ProviderError, because the domain's fallbackAction might then admit the user.
        return Answer(Outcome.DENIED)
    _check(reply)
    verdict = _verdict(reply)
    if verdict in _JUDGED:
        return Answer(_JUDGED[verdict])
    # The reply is another challenge: a code was sent, or a push. For a push, any code is accepted after the user has
    # approved.
    challenge = _challenge(reply, "")
    return replace(challenge, outcome=Outcome.CODE, handle=_parts(challenge.handle)[0]) if challenge else _NO_WAY_ON


def _challenge(reply: _Reply, user: str) -> Answer | None:
    """Return the Answer that asks the user to answer a challenge: WAITING for a push, otherwise CODE.

    Return None if only a browser can answer the challenge, or if the user must enrol first.
    """
    detail = member(reply.document, "detail")
    listed = member(detail, "multi_challenge")
    challenges = listed if isinstance(listed, list) and listed else [detail]
    modes = [_mode(challenge) for challenge in challenges]
    for mode in ("poll", "interactive"):
        of_mode = [challenge for challenge, its in zip(challenges, modes, strict=True) if its == mode]
        if of_mode:
            transaction = text_at(of_mode[0], "transaction_id")
            if not _TRANSACTION.fullmatch(transaction):
                raise ProviderError("privacyIDEA answered a challenge without a usable transaction_id")
            text = _messages(of_mode)
            if mode == "poll":
                return Answer(Outcome.WAITING, handle=f"{transaction} {user}", text=text)
            return Answer(Outcome.CODE, handle=transaction, text=text)
    return None


def _mode(challenge: object) -> str:
    if text_at(challenge, "link"):  # the link of a QR code for enrolment
        return "enrol"
    return text_at(challenge, "client_mode") or _MODES.get(text_at(challenge, "type"), "interactive")


def _messages(challenges: list[object]) -> str:
    """Return the texts of the challenges for the user, joined and without duplicates. If the user must choose a number
    on the phone, one of the texts names it, such as `Please press: 07`."""
    messages = dict.fromkeys(text_at(challenge, "message").strip() for challenge in challenges)
    text = " ".join(filter(None, messages))
    return "".join(letter if letter.isprintable() else " " for letter in text)[:_MAX_TEXT_LENGTH]


def _is_usable(token: object) -> bool:
    return (
        member(token, "active") is True
        and member(token, "revoked") is not True
        and member(token, "locked") is not True
        and text_at(token, "rollout_state") in _ROLLED_OUT
        and text_at(token, "tokentype") not in _NO_FACTOR
    )


def _parts(handle: str) -> tuple[str, str]:
    """Split a handle into the transaction and the user. Raises ProviderError if the handle is not from privacyIDEA."""
    transaction, _, user = handle.partition(" ")
    if not _TRANSACTION.fullmatch(transaction):
        raise ProviderError("the handle is not from privacyIDEA")
    return transaction, user
