"""Tests of privacyIDEA: the contract, and every answer that a server may send.

The tests in tests/peers use a real server.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager

import pytest
from pydantic import ValidationError

from sallyport.areas.mfa.contract import Behaviour, ProviderContract
from sallyport.areas.mfa.fields import PrivacyIdeaFields
from sallyport.areas.mfa.privacyidea import PrivacyIdea
from sallyport.areas.mfa.provider import Answer, Code, Enrolment, Outcome, ProviderError
from tests.areas.mfa.benches import HttpBench
from tests.areas.mfa.host import USER, question
from tests.areas.mfa.web import Call, Reply, WebServer, serving

TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJyb2xlIjoiYWRtaW4ifQ.dGhlLXRlc3Rz" * 60  # has the length of an admin's token
CODE = "123456"
Json = dict[str, object]
PUSH: Json = {"type": "push", "client_mode": "poll", "message": "Please confirm"}
MAIL: Json = {"type": "email", "client_mode": "interactive", "message": "Enter the code from the mail:\r\n"}
BROWSER: Json = {"type": "webauthn", "client_mode": "webauthn", "message": "Touch the key"}
ROLL_OUT: Json = {"type": "push", "client_mode": "poll", "link": "otpauth://pipush/x", "message": "Scan"}
ACTIVE: Json = {"active": True, "revoked": False, "locked": False, "rollout_state": "enrolled", "tokentype": "totp"}
DENY_OR_UNKNOWN = frozenset({Behaviour.DENY, Behaviour.UNKNOWN_USER})


def ok(value: object, detail: object = None, **result: object) -> Reply:
    """Return a result."""
    return Reply(200, {"result": {"status": True, "value": value, **result}, "detail": detail, "jsonrpc": "2.0"})


def refused(status: int, code: int, message: str = "") -> Reply:
    """Return an error response with the server's text."""
    return Reply(status, {"result": {"status": False, "error": {"code": code, "message": f"ERR{code}: {message}"}}})


def triggered(*challenges: Json) -> Reply:
    """Return a response of triggerchallenge."""
    listed = [{"transaction_id": "0815", **challenge} for challenge in challenges]
    said = "CHALLENGE" if listed else "REJECT"
    return ok(len(listed), {"multi_challenge": listed, "messages": []}, authentication=said)


def challenged(*challenges: Json) -> Reply:
    """Return a response of check that triggers challenges."""
    listed = [{"transaction_id": "0815", **challenge} for challenge in challenges]
    return ok(False, {"multi_challenge": listed, **listed[-1]}, authentication="CHALLENGE")


def checked(verdict: str) -> Reply:
    """Return a response of check that triggers no challenge."""
    return ok(verdict == "ACCEPT", {"message": "as a person would read it"}, authentication=verdict)


class Server:
    """One user with one token.

    replies: the answers to use instead. The key is the last part of the path, or the first part after /token.
    """

    def __init__(self, challenges: Sequence[Json] = (PUSH,)) -> None:
        self.web: WebServer
        self.prompts = 0
        self.calls: list[Call] = []
        self.challenges = challenges
        self.replies: dict[str, Reply] = {}

    async def __call__(self, call: Call) -> Reply:
        """Answer a request."""
        self.calls.append(call)
        name = call.path.split("/")[2] or "tokens"
        admins = name in {"triggerchallenge", "tokens", "challenges"}
        assert call.headers.get("authorization") == (TOKEN if admins else None)
        if name in self.replies:
            return self.replies[name]
        if name == "polltransaction":
            return self._poll(call)
        if name == "challenges":
            assert (call.method, call.path) == ("DELETE", "/token/challenges/transaction/0815")
            return ok({"deleted": 1, "status": True})
        assert call.parameters["realm"] == "corp"
        if call.parameters["user"] != USER or self.web.behaviour is Behaviour.UNKNOWN_USER:
            return refused(400, 904, "The user can not be found in any resolver in this realm!")
        return {"tokens": self._tokens, "triggerchallenge": self._trigger, "check": self._check}[name](call)

    def _tokens(self, call: Call) -> Reply:
        assert (call.method, call.path, call.parameters["active"]) == ("GET", "/token/", "True")
        return ok({"count": 1, "tokens": [ACTIVE]})

    def _trigger(self, call: Call) -> Reply:
        assert (call.method, call.path) == ("POST", "/validate/triggerchallenge")
        self.prompts += 1
        return triggered(*self.challenges)

    def _poll(self, call: Call) -> Reply:
        assert (call.method, call.path) == ("GET", "/validate/polltransaction/0815")
        status = {Behaviour.APPROVE: "accept", Behaviour.DENY: "declined"}.get(self.web.behaviour, "pending")
        return ok(status == "accept", {"challenge_status": status})

    def _check(self, call: Call) -> Reply:
        assert (call.method, call.path) == ("POST", "/validate/check")
        form = call.parameters
        pushed = form.get("transaction_id") == "0815" and not form["pass"]
        right = form["pass"] == CODE and self.web.behaviour not in DENY_OR_UNKNOWN
        return checked("ACCEPT" if right or (pushed and self.web.behaviour is Behaviour.APPROVE) else "REJECT")


@asynccontextmanager
async def running() -> AsyncIterator[HttpBench]:
    """Run a server. Yield it with the fields of a provider that uses it."""
    server = Server()
    async with serving(server) as server.web:
        url = f"http://127.0.0.1:{server.web.port}"
        yield HttpBench(PrivacyIdea, {"url": url, "realm": "corp", "adminToken": TOKEN}, [TOKEN], CODE, server)


class TestPush(ProviderContract):
    """A user with a phone."""

    @pytest.fixture
    async def bench(self) -> AsyncIterator[HttpBench]:
        """A server."""
        async with running() as bench:
            yield bench


@pytest.fixture
async def bench() -> AsyncIterator[HttpBench]:
    """A server."""
    async with running() as bench:
        yield bench


@pytest.fixture
def server(bench: HttpBench) -> Server:
    """The server alone."""
    return bench.server


@pytest.fixture
async def provider(bench: HttpBench) -> AsyncIterator[PrivacyIdea]:
    """A provider that uses the server."""
    provider = PrivacyIdea(PrivacyIdeaFields.model_validate(bench.fields), bench.host)
    yield provider
    await provider.aclose()


@pytest.fixture
async def modest(bench: HttpBench) -> AsyncIterator[PrivacyIdea]:
    """A provider that uses the server without an admin token."""
    without = {name: value for name, value in bench.fields.items() if name != "adminToken"}
    provider = PrivacyIdea(PrivacyIdeaFields.model_validate(without), bench.host)
    yield provider
    await provider.aclose()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("url", "http://mfa.example.com"),
        ("url", "https://admin:hunter2@mfa.example.com"),
        ("url", "ftp://127.0.0.1/"),
        ("realm", "two words"),
        ("adminToken", "hunter2\r\nX-Injected: 1"),
        ("adminToken", "h" * 8001),
    ],
)
def test_unsuitable_fields_are_refused(name: str, value: str) -> None:
    """Plain HTTP to other machines, credentials in the URL, and values that an HTTP header cannot contain are refused.

    The message contains none of them.
    """
    with pytest.raises(ValidationError) as caught:
        PrivacyIdeaFields.model_validate({"url": "https://mfa.example.com/pi", name: value})
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("challenges", "expected"),
    [
        ([PUSH], Answer(Outcome.WAITING, f"0815 {USER}", "Please confirm")),
        ([MAIL, PUSH], Answer(Outcome.WAITING, f"0815 {USER}", "Please confirm")),
        ([MAIL, MAIL], Answer(Outcome.CODE, "0815", "Enter the code from the mail:")),
        ([MAIL | {"message": "a\nb" + 300 * "c"}], Answer(Outcome.CODE, "0815", "a b" + 197 * "c")),
        ([{"type": "push"}], Answer(Outcome.WAITING, f"0815 {USER}")),
        ([{"type": "hotp"}], Answer(Outcome.CODE, "0815")),
        ([BROWSER], Answer(Outcome.NOT_ENROLLED)),
        ([ROLL_OUT], Answer(Outcome.NOT_ENROLLED)),
    ],
)
async def test_a_triggered_challenge_decides_the_prompt(
    server: Server, provider: PrivacyIdea, challenges: list[Json], expected: Answer
) -> None:
    """If a push is triggered, the provider waits for it.

    If a code is needed, the user is asked for it. A challenge that only a browser can answer is ignored.
    """
    server.challenges = challenges
    assert await provider.start(question()) == expected


@pytest.mark.parametrize(
    ("tokens", "enrolment", "outcome"),
    [
        ([ACTIVE], Enrolment.ENROLLED, Outcome.CODE),
        ([{"active": True}], Enrolment.ENROLLED, Outcome.CODE),
        ([], Enrolment.NOT_ENROLLED, Outcome.NOT_ENROLLED),
        ([ACTIVE | {"active": False}], Enrolment.NOT_ENROLLED, Outcome.NOT_ENROLLED),
        ([ACTIVE | {"revoked": True}], Enrolment.NOT_ENROLLED, Outcome.NOT_ENROLLED),
        ([ACTIVE | {"locked": True}], Enrolment.NOT_ENROLLED, Outcome.NOT_ENROLLED),
        ([ACTIVE | {"rollout_state": "clientwait"}], Enrolment.NOT_ENROLLED, Outcome.NOT_ENROLLED),
        ([ACTIVE | {"tokentype": "sshkey"}], Enrolment.NOT_ENROLLED, Outcome.NOT_ENROLLED),
        (["what?", None], Enrolment.NOT_ENROLLED, Outcome.NOT_ENROLLED),
    ],
)
async def test_a_user_without_a_challenge_is_asked_for_a_code(
    server: Server, provider: PrivacyIdea, tokens: list[object], enrolment: Enrolment, outcome: Outcome
) -> None:
    """If no challenge is triggered, a user with an active token is asked for a code."""
    server.challenges = []
    server.replies["tokens"] = ok({"count": len(tokens), "tokens": tokens})
    assert await provider.enrolled(USER) is enrolment
    assert await provider.start(question()) == Answer(outcome)


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (checked("REJECT"), Answer(Outcome.CODE)),
        (checked("ACCEPT"), Answer(Outcome.APPROVED)),
        (challenged(MAIL, PUSH), Answer(Outcome.WAITING, f"0815 {USER}", "Please confirm")),
        (challenged(MAIL), Answer(Outcome.CODE, "0815", "Enter the code from the mail:")),
        (challenged(BROWSER), Answer(Outcome.DENIED)),
        (refused(400, 904), Answer(Outcome.NOT_ENROLLED)),
        (refused(403, 303), Answer(Outcome.DENIED)),
    ],
)
async def test_a_login_without_an_admin_token(
    server: Server, modest: PrivacyIdea, reply: Reply, expected: Answer
) -> None:
    """A check with an empty password triggers the tokens without a PIN.

    If it triggers none, the user is asked for a code. Enrolments are unknown.
    """
    server.replies["check"] = reply
    assert await modest.start(question()) == expected
    assert server.calls[-1].parameters == {"user": USER, "realm": "corp", "pass": ""}
    assert await modest.enrolled(USER) is Enrolment.UNKNOWN


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (checked("ACCEPT"), Answer(Outcome.APPROVED)),
        (checked("REJECT"), Answer(Outcome.WRONG_CODE, handle="0815")),
        (checked("DECLINED"), Answer(Outcome.NOT_ME)),
        (challenged(MAIL), Answer(Outcome.CODE, "0815", "Enter the code from the mail:")),
        (challenged(PUSH), Answer(Outcome.CODE, "0815", "Please confirm")),
        (challenged(ROLL_OUT), Answer(Outcome.DENIED)),
        (refused(400, 1007), Answer(Outcome.DENIED)),
        (refused(403, 303), Answer(Outcome.DENIED)),
        (refused(400, 904), Answer(Outcome.NOT_ENROLLED)),
        (ok(True), Answer(Outcome.APPROVED)),
        (ok(False, {"message": "wrong otp pin"}), Answer(Outcome.WRONG_CODE, handle="0815")),
        (ok(False, {"transaction_id": "4711", "message": "?"}), Answer(Outcome.CODE, "4711", "?")),
    ],
)
async def test_verdicts_of_a_check(server: Server, provider: PrivacyIdea, reply: Reply, expected: Answer) -> None:
    """The provider also understands the verdicts of older servers.

    If a policy refuses the login, it is denied, and this is no failure.
    """
    server.replies["check"] = reply
    assert await provider.verify(question(), Code(CODE), "0815") == expected
    assert server.calls[-1].parameters == {"user": USER, "realm": "corp", "pass": CODE, "transaction_id": "0815"}


def nonsense() -> Iterator[Reply]:
    """Return malformed answers, whatever the request is."""
    yield Reply(200, {"result": None})
    yield Reply(200, {"result": {"status": "true", "value": True}})
    yield Reply(200, {"result": {"status": False}})
    yield Reply(200, {"result": {"status": False, "error": {"code": "904"}}})
    yield Reply(404, {"result": {"status": True, "value": True, "authentication": "ACCEPT"}})
    yield ok(None)
    yield ok("true", authentication="ACCEPT")
    yield ok([], authentication="REJECT")
    yield refused(400, 905)
    yield refused(400, 0)


@pytest.mark.parametrize("reply", list(nonsense()))
async def test_a_malformed_answer_is_a_failure(server: Server, provider: PrivacyIdea, reply: Reply) -> None:
    """An answer without a result, or with a malformed result, raises ProviderError in every call."""
    server.replies = dict.fromkeys(("check", "polltransaction", "triggerchallenge", "tokens"), reply)
    for ask in (
        lambda: provider.enrolled(USER),
        lambda: provider.start(question()),
        lambda: provider.poll(f"0815 {USER}"),
        lambda: provider.verify(question(), Code(CODE), ""),
        lambda: provider.verify(question(), Code(CODE), "0815"),
    ):
        with pytest.raises(ProviderError):
            await ask()


@pytest.mark.parametrize(
    "reply",
    [
        ok(True, authentication="REJECT"),
        ok(False, authentication="ACCEPT"),
        ok(1, authentication="ACCEPT"),
        ok(True, authentication=["ACCEPT"]),
        ok(False, {"transaction_id": "../../token"}, authentication="CHALLENGE"),
        ok(False, None, authentication="CHALLENGE"),
    ],
)
async def test_a_contradictory_answer_is_a_failure(server: Server, provider: PrivacyIdea, reply: Reply) -> None:
    """A contradictory answer does not approve a login. Neither does a challenge that cannot be continued."""
    server.replies["check"] = reply
    with pytest.raises(ProviderError):
        await provider.verify(question(), Code(CODE), "")


@pytest.mark.parametrize(
    ("value", "status", "expected"),
    [
        (False, "pending", Outcome.WAITING),
        (False, "declined", Outcome.NOT_ME),
        (False, "cancelled", Outcome.DENIED),
        (False, "", Outcome.WAITING),
        (True, "accept", Outcome.APPROVED),
        (True, "", Outcome.APPROVED),
        (True, "declined", None),
        (False, "accept", None),
        (False, "perhaps", None),
        ("true", "accept", None),
    ],
)
async def test_outcomes_of_a_poll(
    server: Server, provider: PrivacyIdea, value: object, status: str, expected: Outcome | None
) -> None:
    """Each status has its own outcome. An unknown or contradictory status is a failure."""
    server.replies["polltransaction"] = ok(value, {"challenge_status": status})
    handle = f"0815 {USER}"
    if expected is None:
        with pytest.raises(ProviderError):
            await provider.poll(handle)
    else:
        waits = expected is Outcome.WAITING
        assert await provider.poll(handle) == Answer(expected, handle=handle if waits else "")
    spends = [call.parameters for call in server.calls if call.path == "/validate/check"]
    spent = {"user": USER, "realm": "corp", "pass": "", "transaction_id": "0815"}
    assert spends == ([spent] if expected is Outcome.APPROVED else [])


@pytest.mark.parametrize("reply", [checked("REJECT"), checked("DECLINED"), challenged(PUSH), refused(403, 303)])
async def test_an_approval_that_the_check_refuses_is_a_denial(
    server: Server, provider: PrivacyIdea, reply: Reply
) -> None:
    """If the phone has approved but the check that uses the approval is refused, the login is denied."""
    server.replies["check"] = reply
    assert await provider.poll(f"0815 {USER}") == Answer(Outcome.DENIED)


@pytest.mark.parametrize("handle", ["", " ", "../../token/ x", "0815?x=1 x", "a" * 101])
async def test_a_malformed_handle_is_refused(server: Server, provider: PrivacyIdea, handle: str) -> None:
    """For a malformed handle ProviderError is raised and no request is sent."""
    with pytest.raises(ProviderError):
        await provider.poll(handle)
    assert server.calls == []


async def test_a_pin_with_a_code(server: Server, provider: PrivacyIdea) -> None:
    """A text that cannot be only a code is checked again without the transaction. A code is not checked again."""
    await provider.verify(question(), Code("geheim123456"), "0815")
    assert ["transaction_id" in call.parameters for call in server.calls] == [True, False]
    await provider.verify(question(), Code("12345678"), "0815")
    await provider.verify(question(), Code("geheim"), "0815")
    assert len(server.calls) == 4


HANDLES = pytest.mark.parametrize("handle", [pytest.param("", id="no challenge"), pytest.param("0815", id="challenge")])


@HANDLES
@pytest.mark.parametrize("typed", ["", "  ", "12\x003456", "1" * 129])
async def test_unusable_codes_are_not_checked(server: Server, provider: PrivacyIdea, typed: str, handle: str) -> None:
    """No request is sent for an empty code, which would trigger a challenge, or for codes that no user can type."""
    assert await provider.verify(question(), Code(typed), handle) == Answer(Outcome.WRONG_CODE)
    assert server.calls == []


@HANDLES
async def test_a_chap_response_cannot_be_checked(server: Server, provider: PrivacyIdea, handle: str) -> None:
    """A CHAP response is a wrong code, and no request is sent.

    The message to the user says that the device has to use PAP.
    """
    hidden = await provider.verify(question(), Code(None, bytes(17), bytes(16)), handle)
    assert (hidden.outcome, "PAP" in hidden.text) == (Outcome.WRONG_CODE, True)
    assert server.calls == []


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("document", [refused(401, 4304, TOKEN).document, "<html>Log in</html>"])
async def test_a_refused_admin_token_is_a_failure(
    server: Server, provider: PrivacyIdea, status: int, document: object
) -> None:
    """If the admin token has expired or has no rights, the message names the field and does not contain the token."""
    server.replies = dict.fromkeys(("triggerchallenge", "tokens", "challenges"), Reply(status, document))
    for ask in (lambda: provider.enrolled(USER), lambda: provider.start(question())):
        with pytest.raises(ProviderError, match="adminToken") as caught:
            await ask()
        assert TOKEN not in str(caught.value)
    await provider.cancel(f"0815 {USER}")  # the token may not cancel the challenge, which expires by itself


async def test_no_request_is_sent_without_a_user_name(server: Server, provider: PrivacyIdea) -> None:
    """No request is sent without a user name, because the server would list the tokens of all users."""
    assert await provider.enrolled("") is Enrolment.UNKNOWN
    assert server.calls == []


async def test_the_url_may_have_a_path(server: Server, bench: HttpBench) -> None:
    """The URL of a server behind a proxy may have a path. A realm that is not set is not sent."""
    fields = PrivacyIdeaFields.model_validate({"url": f"{bench.fields['url']}/pi"})
    server.replies["validate"] = checked("REJECT")
    provider = PrivacyIdea(fields, bench.host)
    assert (await provider.verify(question(), Code(CODE), "")).outcome is Outcome.WRONG_CODE
    assert server.calls[-1].path == "/pi/validate/check"
    assert server.calls[-1].parameters == {"user": USER, "pass": CODE}
    await provider.aclose()


@pytest.mark.parametrize("transaction", ["../../token", "", "a b", "x" * 101])
@pytest.mark.parametrize("challenge", [PUSH, MAIL], ids=["push", "mail"])
async def test_a_transaction_that_would_change_the_path(
    server: Server, provider: PrivacyIdea, challenge: Json, transaction: str
) -> None:
    """An id from an answer of a server is never sent back as another path."""
    server.replies["triggerchallenge"] = triggered({**challenge, "transaction_id": transaction})
    with pytest.raises(ProviderError, match="usable transaction_id"):
        await provider.start(question())
