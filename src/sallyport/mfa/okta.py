"""The provider for Okta, over Okta's Factors API. It sends a push to Okta Verify. For a user without Okta Verify, it
checks a code from an app (token:software:totp).

The push and the check of a code both use the operation `verify` of a factor. Without a passCode this operation sends a
push, and its answer contains a link for polling.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar, Final, NamedTuple
from urllib.parse import quote

import httpx
from pydantic import Field

from sallyport.mfa.host import Fields, Host, Once
from sallyport.mfa.provider import Answer, Code, Enrolment, Outcome, ProviderError, Question
from sallyport.outgoing.fields import Authority, SecretKey, origin
from sallyport.outgoing.http import exchange, json_array, json_object, text_at

_PUSH: Final = "push"
_TOTP: Final = "token:software:totp"
_CODE_TEXT: Final = "Enter the code from your app."
_PLAIN_TEXT: Final = "A code can only be checked with PAP."
_AGAIN_S: Final = 2.0  # Okta limits the rate of requests
_LONGEST_CODE: Final = 32
_LONGEST_LINK: Final = 1500
# The user statuses with which no login is possible: https://developer.okta.com/docs/api/openapi/okta-management
_SHUT_OUT: Final = frozenset({"LOCKED_OUT", "SUSPENDED", "DEPROVISIONED"})
_RESULTS: Final = {
    "SUCCESS": Outcome.APPROVED,
    "REJECTED": Outcome.DENIED,
    "TIMEOUT": Outcome.DENIED,
    "WAITING": Outcome.WAITING,
}
# The error codes of HTTP 403 that concern the API token (no permission for the operation), not the user's code.
_NOT_ALLOWED: Final = frozenset({"E0000006", "E0000022"})


class OktaFields(Fields):
    """The Okta organization. For tests, a loopback host with a port is accepted; it is reached by plain HTTP."""

    domain: Authority = Field(description="Domain in Okta, such as example.okta.com.")
    apiToken: SecretKey = Field(description="API token.")  # noqa: N815  the interface's spelling


class _User(NamedTuple):
    """A user of Okta.

    id: the user's id in Okta, or empty if Okta does not know the user. shut_out: whether the user's status prevents
    every login. factors: maps each type of factor to the id of the user's active factor of this type.
    """

    id: str
    shut_out: bool
    factors: Mapping[str, str]


class Okta:
    """The provider for Okta."""

    name: ClassVar[str] = "okta"
    fields: ClassVar[type[Fields]] = OktaFields
    asks_for_codes: ClassVar[bool] = True

    def __init__(self, fields: Fields, host: Host) -> None:
        assert isinstance(fields, OktaFields)  # noqa: S101  the caller made it with `fields`
        self._client = host.http(
            origin(fields.domain),
            headers={"Authorization": f"SSWS {fields.apiToken.get_secret_value()}", "Accept": "application/json"},
        )
        self._once = Once()

    async def enrolled(self, user: str) -> Enrolment:
        """Return whether the user has an active factor."""
        found = await self._user(user)
        return Enrolment.ENROLLED if found.factors else Enrolment.NOT_ENROLLED

    async def start(self, question: Question) -> Answer:
        """Send a push, or ask for a code."""
        return await self._once.start(question.challenge_id, lambda: self._begin(question))

    async def poll(self, handle: str) -> Answer:
        """Return whether the user has answered the push."""
        response = await self._ask("GET", _links(handle)["poll"])
        outcome = _result(json_object(response))
        return Answer(outcome, handle=handle if outcome is Outcome.WAITING else "", again_s=_AGAIN_S)

    async def verify(self, question: Question, code: Code, handle: str) -> Answer:
        """Check a code with the user's TOTP factor."""
        if code.text is None:
            return Answer(Outcome.DENIED, text=_PLAIN_TEXT)
        typed = code.text.strip()
        if not (typed.isascii() and typed.isalnum() and len(typed) <= _LONGEST_CODE):
            return Answer(Outcome.WRONG_CODE)
        found = await self._user(question.user)
        if found.shut_out or _TOTP not in found.factors:
            return Answer(Outcome.DENIED if found.shut_out else Outcome.NOT_ENROLLED)
        response = await self._send("POST", _verify_path(found, _TOTP), {"passCode": typed})
        document = json_object(response)
        refused = response.status_code in {400, 403} and text_at(document, "errorCode") not in _NOT_ALLOWED
        if refused:  # a typed code must not look like a failure of Okta, which fallbackAction may allow
            return Answer(Outcome.WRONG_CODE)
        _check(response)
        outcome = _result(document)
        if outcome is Outcome.WAITING:
            raise ProviderError("Okta waits for an approval, although it was sent a code")
        return Answer(outcome)

    async def cancel(self, handle: str) -> None:
        """Cancel the push, if Okta has sent a link for this."""
        link = _links(handle).get("cancel")
        if link is not None:
            await self._send("DELETE", link)

    async def aclose(self) -> None:
        """Close connections."""
        await self._client.aclose()

    async def _begin(self, question: Question) -> Answer:
        found = await self._user(question.user)
        if found.shut_out:
            return Answer(Outcome.DENIED)
        if _PUSH not in found.factors:
            return Answer(Outcome.CODE, text=_CODE_TEXT) if found.factors else Answer(Outcome.NOT_ENROLLED)
        document = json_object(await self._ask("POST", _verify_path(found, _PUSH), {}))
        outcome = _result(document)
        if outcome is not Outcome.WAITING:
            return Answer(outcome)
        return Answer(Outcome.WAITING, handle=self._handle(document), again_s=_AGAIN_S)

    async def _user(self, login: str) -> _User:
        if login in {"", ".", ".."}:  # as a part of the path, these names would lead to other resources
            return _User("", False, {})
        response = await self._send("GET", f"/api/v1/users/{quote(login, safe='')}")
        if response.status_code in {400, 404}:  # 400: Okta refuses the name, which any user can type
            return _User("", False, {})
        _check(response)
        document = json_object(response)
        user_id = _identifier(text_at(document, "id"))
        listed = json_array(await self._ask("GET", f"/api/v1/users/{user_id}/factors"))
        active = [factor for factor in listed if text_at(factor, "status") == "ACTIVE"]
        factors = {
            text_at(factor, "factorType"): _identifier(text_at(factor, "id"))
            for factor in active
            if text_at(factor, "factorType") in {_PUSH, _TOTP}
        }
        return _User(user_id, text_at(document, "status") in _SHUT_OUT, factors)

    def _handle(self, document: object) -> str:
        """Return the links for polling and cancelling as a handle. A link to another origin is left out. Raises
        ProviderError if there is no usable link for polling, because the login would otherwise wait for a prompt that
        cannot be polled."""
        links = {}
        for name in ("poll", "cancel"):
            link = text_at(document, "_links", name, "href")
            if 0 < len(link) <= _LONGEST_LINK and self._is_own(link):
                links[name] = link
        if "poll" not in links:
            raise ProviderError("Okta's answer has no usable link for polling")
        return json.dumps(links)

    def _is_own(self, link: str) -> bool:
        try:
            url, base = httpx.URL(link), self._client.base_url
        except (httpx.InvalidURL, ValueError):
            return False
        own = (url.scheme, url.host, url.port) == (base.scheme, base.host, base.port)
        return own and not url.userinfo

    async def _ask(self, method: str, url: str, body: Mapping[str, object] | None = None) -> httpx.Response:
        response = await self._send(method, url, body)
        _check(response)
        return response

    async def _send(self, method: str, url: str, body: Mapping[str, object] | None = None) -> httpx.Response:
        return await exchange(self._client, method, url, json=body)


def _check(response: httpx.Response) -> None:
    if response.status_code in {401, 403}:
        raise ProviderError(f"Okta refuses the API token (HTTP {response.status_code})")
    if response.status_code >= 400:
        raise ProviderError(f"Okta answered HTTP {response.status_code}")


def _result(document: object) -> Outcome:
    outcome = _RESULTS.get(text_at(document, "factorResult"))
    if outcome is None:
        raise ProviderError("Okta's answer has an unknown factorResult")
    return outcome


def _identifier(text: str) -> str:
    """Return the text if it can safely be a part of a path. Raises ProviderError otherwise."""
    if not (text.isascii() and text.replace("-", "").replace("_", "").isalnum() and len(text) <= 100):
        raise ProviderError("Okta's answer has no usable id")
    return text


def _verify_path(user: _User, kind: str) -> str:
    return f"/api/v1/users/{user.id}/factors/{user.factors[kind]}/verify"


def _links(handle: str) -> dict[str, str]:
    try:
        links = json.loads(handle)
    except ValueError:
        links = None
    poll = text_at(links, "poll")
    if not poll:
        raise ProviderError("the handle is not from Okta")
    cancel = text_at(links, "cancel")
    return {"poll": poll, "cancel": cancel} if cancel else {"poll": poll}
