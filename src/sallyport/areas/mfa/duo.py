"""The provider for Duo. It sends a push to the phone or checks a passcode, over Duo's Auth API v2.

The request `preauth` sends no prompt. Its answer tells whether the user is enrolled, may log in without a prompt
(bypass), or is locked out. The request `auth` with async=1 starts a push and returns a txid. The request `auth_status`
waits for the user's answer (long poll). Requests are signed with Duo's signature version 2 and HMAC-SHA512.
"""

from __future__ import annotations

import hmac
from base64 import b64encode
from collections.abc import Mapping
from email.utils import formatdate
from typing import ClassVar, Final
from urllib.parse import quote, urlencode

import trio

from sallyport.areas.mfa.fields import DuoFields, Fields
from sallyport.areas.mfa.host import Host, Once
from sallyport.areas.mfa.provider import Answer, Code, Enrolment, Outcome, ProviderError, Question
from sallyport.base.clock import SECOND
from sallyport.outgoing.fields import origin
from sallyport.outgoing.http import REPEATABLE, json_object, member, text_at

_CODE_TEXT: Final = "Enter a passcode from Duo Mobile."
_PLAIN_TEXT: Final = "A passcode can only be checked with PAP."
_LONG_POLL_S: Final = 20.0
_AGAIN_S: Final = 1.0  # pause if Duo answers the long poll at once
_ENROLMENTS: Final = {
    "auth": Enrolment.ENROLLED,
    "allow": Enrolment.ENROLLED,
    "enroll": Enrolment.NOT_ENROLLED,
    "deny": Enrolment.UNKNOWN,
}
_ENDED_BEFORE: Final = {
    "allow": Outcome.APPROVED,
    "deny": Outcome.DENIED,
    "enroll": Outcome.NOT_ENROLLED,
}
_RESULTS: Final = {"allow": Outcome.APPROVED, "deny": Outcome.DENIED, "waiting": Outcome.WAITING}
# https://duo.com/docs/authapi#/auth_status: why a push was denied. A user reports the login of another person as fraud.
_DENIED: Final = {"fraud": Outcome.NOT_ME, "timeout": Outcome.UNANSWERED}
_MAX_CODE_LENGTH: Final = 32
_SKEW_S: Final = 60
"""Maximum difference to Duo's clock, in seconds. Duo itself accepts signatures of the last five minutes."""
# https://duo.com/docs/authapi#api-details, "Response Format"
_REFUSALS: Final = {
    40101: "Duo refuses the request, because it finds no signature",
    40102: "Duo does not know the ikey: check that ikey and host belong to the same application",
    40103: "Duo refuses the signature: check skey, host and the clock",
    40104: "Duo refuses the signature: check the clock of this machine",
    40105: "Duo refuses the signature: check the clock of this machine",
    40301: "Duo refuses the application: create an application of the type Auth API",
}


class _Malformed(ProviderError):
    """Raised if Duo refuses the parameters of a request (HTTP 400)."""


def canonical_parameters(parameters: Mapping[str, str]) -> str:
    """Return the parameters in the form in which they are signed and sent: percent-encoded (RFC 3986), and sorted by
    encoded name."""
    return "&".join(
        f"{name}={value}" for name, value in sorted((quote(k, "~"), quote(v, "~")) for k, v in parameters.items())
    )


def sign(skey: bytes, date: str, method: str, host: str, path: str, parameters: Mapping[str, str]) -> str:
    """Return the signature of a request in hex (Duo's version 2). It is the HMAC-SHA512 over five lines: date, method,
    host, path and parameters."""
    lines = (date, method.upper(), host.lower(), path, canonical_parameters(parameters))
    return hmac.digest(skey, "\n".join(lines).encode(), "sha512").hex()


class Duo:
    """The provider for Duo."""

    name: ClassVar[str] = "duo"
    fields: ClassVar[type[Fields]] = DuoFields
    asks_for_codes: ClassVar[bool] = True

    def __init__(self, fields: Fields, host: Host) -> None:
        assert isinstance(fields, DuoFields)  # noqa: S101  the caller made it with `fields`
        self._ikey = fields.ikey
        self._skey = fields.skey.get_secret_value().encode()
        self._signed_host = fields.host.partition(":")[0]  # the signed host has no port
        self._host = host
        self._client = host.http(origin(fields.host))
        self._once = Once()

    async def enrolled(self, user: str) -> Enrolment:
        """Return whether the user is enrolled, by `preauth`."""
        result = text_at(await self._preauth({"username": user}), "result")
        if result not in _ENROLMENTS:
            raise ProviderError("Duo's answer to preauth is unknown")
        return _ENROLMENTS[result]

    async def check(self) -> str:
        """Check the clock and the keys. The request `ping` needs no signature, and returns Duo's time. The request
        `check` is signed, and Duo verifies the signature."""
        answer = await self._client.get("/auth/v2/ping", headers={"Accept": "application/json"})
        now, theirs = self._host.clock() // SECOND, member(json_object(answer), "response", "time")
        if answer.status_code != 200 or not isinstance(theirs, int):
            raise ProviderError(f"the server is not Duo's Auth API (HTTP {answer.status_code}): check host")
        if abs(now - theirs) > _SKEW_S:
            raise ProviderError(
                f"the clock of this machine differs from Duo's by {abs(now - theirs)} s: set it, best by NTP"
            )
        await self._call("GET", "/auth/v2/check", {})
        return "Duo accepts the keys, and the clocks agree"

    async def start(self, question: Question) -> Answer:
        """Send a push. If no device of the user accepts a push, ask for a passcode."""
        return await self._once.start(question.challenge_id, lambda: self._begin(question))

    async def poll(self, handle: str) -> Answer:
        """Wait for the user's answer, by Duo's long poll."""
        began = trio.current_time()
        with trio.move_on_after(_LONG_POLL_S):
            answer = await self._call("GET", "/auth/v2/auth_status", {"txid": handle}, timeout_s=2 * _LONG_POLL_S)
            outcome = _RESULTS.get(text_at(answer, "result"))
            if outcome is None:
                raise ProviderError("Duo's answer to auth_status is unknown")
            if outcome is Outcome.DENIED:
                outcome = _DENIED.get(text_at(answer, "status"), outcome)
            if outcome is not Outcome.WAITING:
                return Answer(outcome)
        waited = trio.current_time() - began > _AGAIN_S
        return Answer(Outcome.WAITING, handle=handle, again_s=0 if waited else _AGAIN_S)

    async def verify(self, question: Question, code: Code, handle: str) -> Answer:
        """Check a passcode."""
        if code.text is None:
            return Answer(Outcome.DENIED, text=_PLAIN_TEXT)
        typed = code.text.strip()
        if not (typed.isascii() and typed.isalnum() and len(typed) <= _MAX_CODE_LENGTH):
            return Answer(Outcome.WRONG_CODE)  # Duo would answer that the request is malformed
        asked = {"username": question.user, "factor": "passcode", "passcode": typed} | _source(question)
        try:
            answer = await self._call("POST", "/auth/v2/auth", asked)
        except _Malformed:  # a typed code must not look like a failure of Duo, which fallbackAction may allow
            return Answer(Outcome.WRONG_CODE)
        result = text_at(answer, "result")
        if result == "allow":
            return Answer(Outcome.APPROVED)
        if result != "deny":
            raise ProviderError("Duo's answer to auth is unknown")
        return Answer(Outcome.DENIED if text_at(answer, "status") == "locked_out" else Outcome.WRONG_CODE)

    async def cancel(self, handle: str) -> None:
        """Do nothing, because Duo's API cannot cancel a push. The push expires after a minute."""

    async def aclose(self) -> None:
        """Close connections."""
        await self._client.aclose()

    async def _begin(self, question: Question) -> Answer:
        found = await self._preauth({"username": question.user} | _source(question))
        result = text_at(found, "result")
        if result in _ENDED_BEFORE:
            return Answer(_ENDED_BEFORE[result])
        if result != "auth":
            raise ProviderError("Duo's answer to preauth is unknown")
        if not _takes_push(found):
            return Answer(Outcome.CODE, text=_CODE_TEXT)
        asked = {
            "username": question.user,
            "factor": "push",
            "device": "auto",
            "async": "1",
            "type": "Network login",
            "display_username": question.user,
            "pushinfo": urlencode(
                {
                    "domain": _shown(question.domain),
                    "device": _shown(question.device),
                    "station": _shown(question.station),
                }
            ),
        }
        txid = text_at(await self._call("POST", "/auth/v2/auth", asked | _source(question)), "txid")
        if not txid or len(txid) > 1000:
            raise ProviderError("Duo's answer to auth has no usable txid")
        return Answer(Outcome.WAITING, handle=txid, again_s=0)

    async def _preauth(self, parameters: Mapping[str, str]) -> Mapping[str, object]:
        try:
            return await self._call("POST", "/auth/v2/preauth", parameters, is_repeatable=True)
        except _Malformed:  # Duo refuses the name. This is no failure, since any user can type such a name
            return {"result": "enroll"}

    async def _call(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, str],
        *,
        timeout_s: float | None = None,
        is_repeatable: bool = False,
    ) -> Mapping[str, object]:
        """Send a signed request, and return the member `response` of the answer. Raises ProviderError if the member
        `stat` is not OK."""
        date = formatdate(self._host.clock() / SECOND, usegmt=False)
        signature = sign(self._skey, date, method, self._signed_host, path, parameters)
        credentials = b64encode(f"{self._ikey}:{signature}".encode()).decode()
        headers = {"Authorization": f"Basic {credentials}", "Date": date, "Accept": "application/json"}
        sent = canonical_parameters(parameters)
        limit = self._client.timeout if timeout_s is None else timeout_s
        if method == "GET":
            answer = await self._client.get(f"{path}?{sent}", headers=headers, timeout=limit)
        else:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            extensions = REPEATABLE if is_repeatable else {}
            answer = await self._client.post(
                path, content=sent.encode(), headers=headers, timeout=limit, extensions=extensions
            )
        document = json_object(answer)
        response, code = member(document, "response"), member(document, "code")
        if answer.status_code in {401, 403}:
            told = _REFUSALS.get(code) if isinstance(code, int) else None
            raise ProviderError(told or "Duo refuses the signature: check ikey, skey, host and the clock")
        if answer.status_code != 200 or text_at(document, "stat") != "OK" or not isinstance(response, dict):
            kind = _Malformed if answer.status_code == 400 else ProviderError
            raise kind(f"Duo refuses: HTTP {answer.status_code}, code {code if type(code) is int else '-'}")
        return response


def _source(question: Question) -> dict[str, str]:
    return {"ipaddr": question.source} if question.source else {}


def _shown(text: str) -> str:
    """Return a text for the display of the phone, with at most 100 printable characters. The client may have chosen the
    text freely, for example the station's name."""
    return "".join(character for character in text if character.isprintable())[:100] or "-"


def _takes_push(preauth: Mapping[str, object]) -> bool:
    """Return whether one of the user's devices accepts a push. Without a list of devices the result is True, because
    Duo then chooses a device itself (`auto`)."""
    devices = member(preauth, "devices")
    if not isinstance(devices, list):
        return True
    abilities = [member(device, "capabilities") for device in devices]
    return any(isinstance(able, list) and "push" in able for able in abilities)
