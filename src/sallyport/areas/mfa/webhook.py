"""The provider for a customer's own second factor. The service calls the customer's server over HTTPS (webhook).

    POST url {type: "challenge", challenge_id, user, domain, device, source, expires_at}
        200 {status: approved | denied | not_me | unknown_user}, 200 {status: code, text?}, or 202 {poll_url}
    POST url {type: "code", challenge_id, user, code}
        200 {status: approved | denied}, or 200 {status: wrong_code, text?}
    GET poll_url
        200 {status: waiting | approved | denied | not_me | unanswered}
    POST url {type: "enrolment", user}
        200 {status: enrolled | unknown_user}
    POST url {type: "ping"}
        401 or 403 for a wrong signature; otherwise any status but 404

With the status `code`, the hook asks for a code that it has sent to the user, such as by SMS. The user types the code
at the device, and the service sends it to the hook. `text` is what the user sees.

Every request has the headers X-Sallyport-Id, X-Sallyport-Timestamp (seconds since 1970) and X-Sallyport-Signature. The
signature is the HMAC-SHA256 over timestamp + "." + body with the secret, in hex. The body of a GET is empty.
challenge_id is an idempotency key: a challenge may come again, and each of its codes too, with the same X-Sallyport-Id.
expires_at is ISO 8601 in UTC.

`not_me` means that the user says: somebody else has started the login. `denied` refuses the login for any other reason.
`unanswered` means that the user has not answered in time.

A hook must answer every request within 10 seconds. If the user needs longer, the hook answers with a poll_url. An
answer with a poll_url, or with the status `waiting`, may contain a Retry-After. This is the time until the next poll;
the default is 1 second. If very many logins wait, the service polls less often.
"""

from __future__ import annotations

import hmac
import json
import secrets
from typing import ClassVar, Final

import httpx

from sallyport.areas.mfa.fields import Fields, WebhookFields
from sallyport.areas.mfa.host import Host
from sallyport.areas.mfa.provider import CHECK_USER, Answer, Code, Enrolment, Outcome, ProviderError, Question
from sallyport.base.clock import SECOND, iso
from sallyport.outgoing.http import REPEATABLE, json_object, link_of, text_at

_MAX_URL: Final = 2048
_FINAL: Final = {"approved": Outcome.APPROVED, "denied": Outcome.DENIED, "not_me": Outcome.NOT_ME}
_STARTED: Final = _FINAL | {"unknown_user": Outcome.NOT_ENROLLED, "code": Outcome.CODE}
_POLLED: Final = _FINAL | {"unanswered": Outcome.UNANSWERED, "waiting": Outcome.WAITING}
_CHECKED: Final = _FINAL | {"wrong_code": Outcome.WRONG_CODE}
_CODE: Final = "code"
"""The handle of a challenge for which the hook has asked for a code."""
_MAX_CODE: Final = 64
_MAX_TEXT: Final = 200
_PLAIN_TEXT: Final = "the code must be typed as plain text: CHAP hides it"
_ENROLMENTS: Final = {"enrolled": Enrolment.ENROLLED, "unknown_user": Enrolment.NOT_ENROLLED}


def signature(secret: bytes, timestamp: str, body: bytes) -> str:
    """Return the value of X-Sallyport-Signature."""
    return hmac.digest(secret, timestamp.encode() + b"." + body, "sha256").hex()


class Webhook:
    """The provider for a customer's server."""

    name: ClassVar[str] = "webhook"
    fields: ClassVar[type[Fields]] = WebhookFields
    asks_for_codes: ClassVar[bool] = False

    def __init__(self, fields: Fields, host: Host) -> None:
        assert isinstance(fields, WebhookFields)  # noqa: S101  the caller made it with `fields`
        self._url = fields.url
        self._secret = fields.secret.get_secret_value().encode()
        self._host = host
        self._client = host.http(str(httpx.URL(fields.url).copy_with(raw_path=b"/")))

    async def enrolled(self, user: str) -> Enrolment:
        """Ask whether the user is enrolled, without a prompt. Return UNKNOWN if the hook does not support this
        request."""
        response = await self._post({"type": "enrolment", "user": user}, secrets.token_hex(16))
        if response.status_code != 200:
            return Enrolment.UNKNOWN
        return _ENROLMENTS.get(_status(response), Enrolment.UNKNOWN)

    async def check(self) -> str:
        """Send a ping, and then ask for an enrolment. The hook need not support these requests, but it must refuse a
        wrong signature."""
        status = (await self._post({"type": "ping"}, secrets.token_hex(16))).status_code
        if status in {401, 403}:
            raise ProviderError(
                f"the hook refuses the signature (HTTP {status}): check secret, and the clocks of both machines"
            )
        if status == 404:
            raise ProviderError("the hook is not at this path (HTTP 404): check url")
        if await self.enrolled(CHECK_USER) is Enrolment.UNKNOWN:
            return "the hook answers, but cannot be asked about enrolments"
        return "the hook answers"

    async def start(self, question: Question) -> Answer:
        """Send the challenge of a login to the hook."""
        body = {
            "type": "challenge",
            "challenge_id": question.challenge_id,
            "user": question.user,
            "domain": question.domain,
            "device": question.device,
            "source": question.source,
            "station": question.station,
            "expires_at": iso(question.expires_at),
        }
        response = await self._post(body, question.challenge_id)
        if response.status_code == 202:
            return _waiting(response, self._own(text_at(json_object(response), "poll_url")))
        outcome = _outcome(_STARTED, _status(response))
        return Answer(outcome, handle=_CODE, text=_text(response)) if outcome is Outcome.CODE else Answer(outcome)

    async def poll(self, handle: str) -> Answer:
        """Send a GET request to the poll_url that the hook has returned."""
        response = await self._client.get(self._own(handle), headers=self._signed(b"", secrets.token_hex(16)))
        outcome = _outcome(_POLLED, _status(response))
        return _waiting(response, handle) if outcome is Outcome.WAITING else Answer(outcome)

    async def verify(self, question: Question, code: Code, handle: str) -> Answer:
        """Let the hook check a code that it has asked for. Return DENIED for a code that followed the password, because
        the hook has not sent it."""
        if handle != _CODE:
            return Answer(Outcome.DENIED, text="codes are not used here")
        if code.text is None:
            return Answer(Outcome.DENIED, text=_PLAIN_TEXT)
        typed = code.text.strip()
        if not (0 < len(typed) <= _MAX_CODE and typed.isascii() and typed.isprintable()):
            return Answer(Outcome.WRONG_CODE, handle=_CODE)
        body = {"type": "code", "challenge_id": question.challenge_id, "user": question.user, "code": typed}
        response = await self._post(body, secrets.token_hex(16))
        return Answer(_outcome(_CHECKED, _status(response)), handle=_CODE, text=_text(response))

    async def cancel(self, handle: str) -> None:
        """Do nothing. The hook has learned from expires_at when the login ends."""

    async def aclose(self) -> None:
        """Close connections."""
        await self._client.aclose()

    async def _post(self, body: dict[str, str], request_id: str) -> httpx.Response:
        octets = json.dumps(body, ensure_ascii=True, separators=(",", ":")).encode()
        headers = self._signed(octets, request_id) | {"Content-Type": "application/json"}
        # The hook recognises a repeated challenge by its id, and the other requests change nothing.
        return await self._client.post(self._url, content=octets, headers=headers, extensions=REPEATABLE)

    def _signed(self, body: bytes, request_id: str) -> dict[str, str]:
        timestamp = str(self._host.clock() // SECOND)
        return {
            "Accept": "application/json",
            "X-Sallyport-Id": request_id,
            "X-Sallyport-Timestamp": timestamp,
            "X-Sallyport-Signature": signature(self._secret, timestamp, body),
        }

    def _own(self, poll_url: str) -> str:
        """Check a poll_url, and return it as a handle. Raises ProviderError if it is not a URL, or if its origin
        differs from the hook's.

        The client checks the origin too, but only after the login has waited for the prompt.
        """
        if not 0 < len(poll_url) <= _MAX_URL:
            raise ProviderError("the hook answered HTTP 202 without a usable poll_url")
        return str(link_of(self._client, poll_url, "poll_url"))


def _status(response: httpx.Response) -> str:
    if response.status_code != 200:
        raise ProviderError(f"the hook answered HTTP {response.status_code}")
    return text_at(json_object(response), "status")


def _text(response: httpx.Response) -> str:
    """Return the text for the user in an answer, in one line."""
    text = text_at(json_object(response), "text")
    return "".join(letter if letter.isprintable() else " " for letter in text).strip()[:_MAX_TEXT]


def _outcome(known: dict[str, Outcome], status: str) -> Outcome:
    if status not in known:
        raise ProviderError(f"the hook answered a status that is none of {', '.join(known)}")
    return known[status]


def _waiting(response: httpx.Response, poll_url: str) -> Answer:
    retry = response.headers.get("Retry-After", "")
    again_s = min(float(retry), 10.0) if retry.isascii() and retry.isdecimal() else 1.0
    return Answer(Outcome.WAITING, handle=poll_url, again_s=max(again_s, 0.2))
