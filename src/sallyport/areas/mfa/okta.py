"""The provider for Okta, over Okta's Factors API. It sends a push to Okta Verify. For a user without Okta Verify, it
checks a code from an app (token:software:totp).

The push and the check of a code both use the operation `verify` of a factor. Without a passCode this operation sends a
push, and its answer contains a link for polling.

A user may have several factors of a type, such as two phones or the apps of two vendors. All phones get the push, and
the first answer counts. A code is checked with one app after the other, first with the app that the user used last.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import ClassVar, Final, NamedTuple
from urllib.parse import quote

import httpx

from sallyport.areas.mfa.fields import Fields, OktaFields
from sallyport.areas.mfa.host import Host, Once
from sallyport.areas.mfa.provider import Answer, Code, Enrolment, Outcome, ProviderError, Question
from sallyport.base.bounded import BoundedMap
from sallyport.outgoing.fields import origin
from sallyport.outgoing.http import json_array, json_object, link_of, member, text_at

_PUSH: Final = "push"
_TOTP: Final = "token:software:totp"
_CODE_TEXT: Final = "Enter the code from your app."
_PLAIN_TEXT: Final = "A code can only be checked with PAP."
_AGAIN_S: Final = 2.0  # Okta limits the rate of requests
_MAX_CODE_LENGTH: Final = 32
_NUMBERS: Final = 1000
_MAX_LINK_LENGTH: Final = 1500
_MAX_HANDLE_LENGTH: Final = 4000
_MAX_FACTORS: Final = 4
"""Maximum number of factors of a type that are used, in Okta's order."""
_MAX_KNOWN: Final = 10_000
# The user statuses with which no login is possible: https://developer.okta.com/docs/api/openapi/okta-management
_SHUT_OUT: Final = frozenset({"LOCKED_OUT", "SUSPENDED", "DEPROVISIONED"})
_SUCCESS, _REJECTED, _TIMEOUT, _WAITING = "SUCCESS", "REJECTED", "TIMEOUT", "WAITING"
_RESULTS: Final = frozenset({_SUCCESS, _REJECTED, _TIMEOUT, _WAITING})
# The error codes of HTTP 403 that concern the API token (no permission for the operation), not the user's code.
_NOT_ALLOWED: Final = frozenset({"E0000006", "E0000022"})


class _User(NamedTuple):
    """A user of Okta.

    id: the user's id in Okta, or empty if Okta does not know the user. shut_out: whether the user's status prevents
    every login. factors: maps each type of factor to the ids of the user's active factors of this type.
    """

    id: str
    shut_out: bool
    factors: Mapping[str, Sequence[str]]


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
        self._last_used = BoundedMap[str, str](_MAX_KNOWN)  # the factor of each user that has confirmed a code

    async def enrolled(self, user: str) -> Enrolment:
        """Return whether the user has an active factor."""
        found = await self._user(user)
        return Enrolment.ENROLLED if found.factors else Enrolment.NOT_ENROLLED

    async def start(self, question: Question) -> Answer:
        """Send a push, or ask for a code."""
        return await self._once.start(question.challenge_id, lambda: self._begin(question))

    async def poll(self, handle: str) -> Answer:
        """Return whether the user has answered one of the pushes."""
        prompts = _prompts(handle)
        results, numbers, failure = list[str](), list[str](), None
        for prompt in prompts:
            try:
                document = json_object(await self._ask("GET", prompt["poll"]))
                results.append(_result(document))
                numbers += _number(document)
            except ProviderError as error:
                failure = error
        if failure is not None and not results:
            raise failure
        outcome = _first_answer(results, is_complete=failure is None)
        if outcome is not Outcome.WAITING and len(prompts) > 1:
            with suppress(ProviderError):
                await self.cancel(handle)
        if outcome is not Outcome.WAITING:
            return Answer(outcome)
        return Answer(Outcome.WAITING, handle=handle, text=_choose(numbers), again_s=_AGAIN_S)

    async def verify(self, question: Question, code: Code, handle: str) -> Answer:
        """Check a code with the user's TOTP factors."""
        if code.text is None:
            return Answer(Outcome.DENIED, text=_PLAIN_TEXT)
        typed = code.text.strip()
        if not (typed.isascii() and typed.isalnum() and len(typed) <= _MAX_CODE_LENGTH):
            return Answer(Outcome.WRONG_CODE)
        found = await self._user(question.user)
        if found.shut_out or _TOTP not in found.factors:
            return Answer(Outcome.DENIED if found.shut_out else Outcome.NOT_ENROLLED)
        last = self._last_used.get(found.id)
        for factor in sorted(found.factors[_TOTP], key=lambda each: each != last):
            if await self._confirms(found, factor, typed):
                self._last_used.put(found.id, factor)
                return Answer(Outcome.APPROVED)
        return Answer(Outcome.WRONG_CODE)

    async def cancel(self, handle: str) -> None:
        """Cancel the pushes, if Okta has sent links for this."""
        for prompt in _prompts(handle):
            if "cancel" in prompt:
                await self._send("DELETE", prompt["cancel"])

    async def aclose(self) -> None:
        """Close connections."""
        await self._client.aclose()

    async def _begin(self, question: Question) -> Answer:
        found = await self._user(question.user)
        if found.shut_out:
            return Answer(Outcome.DENIED)
        if _PUSH not in found.factors:
            return Answer(Outcome.CODE, text=_CODE_TEXT) if found.factors else Answer(Outcome.NOT_ENROLLED)
        waiting, results, failure = list[object](), list[str](), None
        for factor in found.factors[_PUSH]:
            try:
                document = json_object(await self._ask("POST", _verify_path(found, factor), {}))
                results.append(_result(document))
            except ProviderError as error:
                failure = error
                continue
            if results[-1] == _WAITING:
                waiting.append(document)
        if failure is not None and not results:
            raise failure
        outcome = _first_answer(results)
        if outcome is not Outcome.WAITING:
            return Answer(outcome)
        numbers = [number for document in waiting for number in _number(document)]
        return Answer(Outcome.WAITING, handle=self._handle(waiting), text=_choose(numbers), again_s=_AGAIN_S)

    async def _confirms(self, found: _User, factor: str, typed: str) -> bool:
        """Return whether a factor accepts a code. Raises ProviderError."""
        response = await self._send("POST", _verify_path(found, factor), {"passCode": typed})
        document = json_object(response)
        if response.status_code in {400, 403} and text_at(document, "errorCode") not in _NOT_ALLOWED:
            return False  # a typed code must not look like a failure of Okta, which fallbackAction may allow
        _check(response)
        result = _result(document)
        if result == _WAITING:
            raise ProviderError("Okta waits for an approval, although it was sent a code")
        return result == _SUCCESS

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
        factors: dict[str, list[str]] = {}
        for factor in listed:
            kind = text_at(factor, "factorType")
            if kind in {_PUSH, _TOTP} and text_at(factor, "status") == "ACTIVE":
                same = factors.setdefault(kind, [])
                if len(same) < _MAX_FACTORS:
                    same.append(_identifier(text_at(factor, "id")))
        return _User(user_id, text_at(document, "status") in _SHUT_OUT, factors)

    def _handle(self, documents: Sequence[object]) -> str:
        """Return the links for polling and cancelling as a handle. A link to another origin is left out, and so are the
        links for cancelling if the handle would be too long. Raises ProviderError if there is no usable link for
        polling, because the login would otherwise wait for a prompt that cannot be polled."""
        prompts = [links for links in map(self._links, documents) if "poll" in links]
        handle = json.dumps(prompts)
        if len(handle) > _MAX_HANDLE_LENGTH:
            prompts = [{"poll": links["poll"]} for links in prompts]
            handle = json.dumps(prompts)
        if not prompts or len(handle) > _MAX_HANDLE_LENGTH:
            raise ProviderError("Okta's answer has no usable link for polling")
        return handle

    def _links(self, document: object) -> dict[str, str]:
        links = {name: text_at(document, "_links", name, "href") for name in ("poll", "cancel")}
        return {name: link for name, link in links.items() if 0 < len(link) <= _MAX_LINK_LENGTH and self._is_own(link)}

    def _is_own(self, link: str) -> bool:
        try:
            link_of(self._client, link)
        except ProviderError:
            return False
        return True

    async def _ask(self, method: str, url: str, body: Mapping[str, object] | None = None) -> httpx.Response:
        response = await self._send(method, url, body)
        _check(response)
        return response

    async def _send(self, method: str, url: str, body: Mapping[str, object] | None = None) -> httpx.Response:
        return await self._client.request(method, url, json=body)


def _check(response: httpx.Response) -> None:
    if response.status_code in {401, 403}:
        raise ProviderError(f"Okta refuses the API token (HTTP {response.status_code})")
    if response.status_code >= 400:
        raise ProviderError(f"Okta answered HTTP {response.status_code}")


def _result(document: object) -> str:
    result = text_at(document, "factorResult")
    if result not in _RESULTS:
        raise ProviderError("Okta's answer has an unknown factorResult")
    return result


def _number(document: object) -> list[str]:
    """Return the number that the user must choose on the phone (number challenge). Return an empty list if there is
    none."""
    number = member(document, "_embedded", "challenge", "correctAnswer")
    return [str(number)] if type(number) is int and 0 <= number < _NUMBERS else []


def _choose(numbers: Sequence[str]) -> str:
    """Return the text that names the numbers, or an empty text if there is none. Each phone has a number of its own."""
    return f"Choose {' or '.join(numbers)} in Okta Verify, then press Enter" if numbers else ""


def _first_answer(results: Sequence[str], *, is_complete: bool = True) -> Outcome:
    """Return the outcome of several pushes. The outcome is WAITING until one push is answered, or all have timed out. A
    rejection takes precedence over an approval: its button in Okta Verify says that it is not the user. is_complete:
    whether the results of all pushes are known."""
    if _REJECTED in results:
        return Outcome.NOT_ME
    if _SUCCESS in results:
        return Outcome.APPROVED
    return Outcome.WAITING if _WAITING in results or not is_complete else Outcome.UNANSWERED


def _identifier(text: str) -> str:
    """Return the text if it can safely be a part of a path. Raises ProviderError otherwise."""
    if not (text.isascii() and text.replace("-", "").replace("_", "").isalnum() and len(text) <= 100):
        raise ProviderError("Okta's answer has no usable id")
    return text


def _verify_path(user: _User, factor: str) -> str:
    return f"/api/v1/users/{user.id}/factors/{factor}/verify"


def _prompts(handle: str) -> list[dict[str, str]]:
    """Return the links of each push in a handle. Raises ProviderError if the handle is not from this provider."""
    try:
        links = json.loads(handle)
    except ValueError:
        links = None
    several = links if isinstance(links, list) else [links]
    prompts = [{name: link for name in ("poll", "cancel") if (link := text_at(prompt, name))} for prompt in several]
    if not prompts or not all("poll" in prompt for prompt in prompts):
        raise ProviderError("the handle is not from Okta")
    return prompts
