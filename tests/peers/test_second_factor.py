"""Tests with radclient as the device of a domain that enforces: pushes, challenges, and a code that is appended to the
password."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.peers.hook import Hook
from tests.peers.programs import needs
from tests.peers.second_factor import (
    ACCEPTED,
    CHALLENGED,
    ONE,
    PASSWORD,
    REJECTED,
    Device,
    answer_attributes,
    enrol,
    event,
    next_code,
    populate,
    provide,
    state_of,
)
from tests.running_service import RunningService, running_service

PUSHED = ("ann", "ben", "cora", "dan", "eve", "fay", "gus", "ida", "rita", "alan", "gail")
CODED = ("kim", "lea", "max", "nell", "olga", "paul", "quin", "rosa", "sam", "tim")
REPLY = [
    {"name": "Filter-Id", "value": "staff"},
    {"name": "Class", "value": "0x0102030405"},
]

pytestmark = [pytest.mark.peer, needs("radclient")]
Login = Callable[..., str]


@pytest.fixture(scope="module")
def hook() -> Iterator[Hook]:
    """Yield the provider that sends the pushes."""
    with Hook() as hook:
        yield hook
        assert hook.forged == 0


@pytest.fixture(scope="module")
def pushing(tmp_path_factory: pytest.TempPathFactory, hook: Hook) -> Iterator[RunningService]:
    """Yield a service that sends pushes.

    Rules set reply attributes for two users. Only one of them needs a second factor.
    """
    with running_service(tmp_path_factory.mktemp("pushing")) as service:
        populate(service, *PUSHED)
        provide(service, "webhook", **hook.fields)
        rule = {**ONE, "vlan": "42", "replyAttributes": REPLY}
        service.post("/ad/AddLoginRule", {**rule, "name": "asked", "action": "mfa_required", "users": ["rita"]})
        service.post("/ad/AddLoginRule", {**rule, "name": "let in", "action": "allow", "users": ["alan"]})
        yield service


@pytest.fixture(scope="module")
def coding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Yield a service that asks for one-time passwords, with the same reply attributes for one user."""
    with running_service(tmp_path_factory.mktemp("coding")) as service:
        populate(service, *CODED)
        provide(service, "totp")
        rule = {**ONE, "vlan": "42", "replyAttributes": REPLY}
        service.post("/ad/AddLoginRule", {**rule, "name": "asked", "action": "mfa_required", "users": ["rosa"]})
        yield service


@pytest.fixture
def phone_device(tmp_path: Path, pushing: RunningService) -> Device:
    """Return a new device at the service that sends pushes."""
    return Device(tmp_path, pushing.ports.auth)


@pytest.fixture
def code_device(tmp_path: Path, coding: RunningService) -> Device:
    """Return a new device at the service that asks for codes."""
    return Device(tmp_path, coding.ports.auth)


# --- push -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("user", "kind"), [("ann", "pap"), ("ben", "chap")])
def test_a_push_is_waited_for(pushing: RunningService, hook: Hook, phone_device: Device, user: str, kind: str) -> None:
    """The request waits until the user approves. Then it is accepted, and the event has both factors."""
    hook.will(user, "approved", after_s=1.5)
    login: Login = getattr(phone_device, kind)
    began = time.monotonic()
    assert ACCEPTED in login(user, PASSWORD)
    assert time.monotonic() - began >= 1.5
    assert hook.prompts_of(user) == 1
    assert event(pushing, user) == ("accept", "accept", "", "local+webhook")


def traces_at(hook: Hook, user: str) -> str:
    """Return the only trace id of all requests about a user's prompt."""
    (challenge,) = {each["challenge_id"] for each in hook.prompts if each["user"] == user}
    (header,) = hook.traces[challenge]
    return header.split("-")[1]


def traces_of(service: RunningService, user: str) -> list[str]:
    """Return the trace ids of a user's events, the newest first."""
    return [each["traceId"] for each in service.post("/ad/GetAuthLog", {**ONE, "search": user})["events"]]


def test_the_webhook_and_the_event_have_one_trace(pushing: RunningService, hook: Hook, phone_device: Device) -> None:
    """The challenge and each poll name the trace of the event. A login that waits for no other system has no trace."""
    hook.will("gail", "approved", after_s=0.5)
    assert ACCEPTED in phone_device.pap("gail", PASSWORD)
    assert REJECTED in phone_device.pap("gail", "wrong")
    assert traces_of(pushing, "gail") == ["", traces_at(hook, "gail")]


def test_a_wrong_password_sends_no_prompt(pushing: RunningService, hook: Hook, phone_device: Device) -> None:
    """A wrong password is rejected without a prompt."""
    hook.will("cora", "approved")
    assert REJECTED in phone_device.pap("cora", "wrong")
    assert hook.prompts_of("cora") == 0
    assert event(pushing, "cora")[:3] == ("reject", "reject", "wrong password")


def test_retransmits_are_one_prompt(pushing: RunningService, hook: Hook, phone_device: Device) -> None:
    """If radclient repeats the identical packet while the push waits, there is one prompt, one answer and one event."""
    hook.will("dan", "approved", after_s=2)
    output = phone_device.pap("dan", PASSWORD, tries=12, wait_s=0.5)
    assert output.count("Sent Access-Request") > 2
    assert output.count(ACCEPTED) == 1
    assert hook.prompts_of("dan") == 1
    assert pushing.rows("select count(*) from events where user_name = 'dan'") == [(1,)]


def test_a_new_packet_of_the_same_login_joins(pushing: RunningService, hook: Hook, phone_device: Device) -> None:
    """If the same station sends another packet, it replaces the waiting one. There is one prompt and one Accept.
    Its event has the trace of the prompt."""
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(phone_device.pap, "eve", PASSWORD, wait_s=4)
        hook.wait_for_prompt("eve")
        newest = pool.submit(phone_device.pap, "eve", PASSWORD, wait_s=4)
        time.sleep(0.5)
        hook.will("eve", "approved")
        assert ACCEPTED in newest.result()
        assert ACCEPTED not in first.result()
    assert hook.prompts_of("eve") == 1
    assert traces_of(pushing, "eve") == [traces_at(hook, "eve")]


def test_another_station_is_another_prompt(
    tmp_path: Path, pushing: RunningService, hook: Hook, phone_device: Device
) -> None:
    """Two stations of one user are two logins. Each has its own prompt."""
    hook.will("fay", "approved", after_s=1)
    other = Device(tmp_path, pushing.ports.auth)
    with ThreadPoolExecutor(2) as pool:
        logins = [pool.submit(device.pap, "fay", PASSWORD) for device in (phone_device, other)]
        assert all(ACCEPTED in login.result() for login in logins)
    assert hook.prompts_of("fay") == 2


@pytest.mark.parametrize(
    ("user", "status", "reason"),
    [("gus", "denied", "second factor denied"), ("ida", "unknown_user", "not enrolled")],
)
def test_a_user_without_an_approval_is_rejected(
    pushing: RunningService, hook: Hook, phone_device: Device, user: str, status: str, reason: str
) -> None:
    """If a user denies the push, the login is rejected with that reason.

    A user that the provider does not know is rejected with another reason.
    """
    hook.will(user, status)
    assert REJECTED in phone_device.pap(user, PASSWORD)
    assert event(pushing, user) == ("reject", "reject", reason, "local+webhook")


def test_the_answer_is_the_same_with_and_without_a_push(
    tmp_path: Path, pushing: RunningService, hook: Hook, phone_device: Device
) -> None:
    """The Accept has the Class, Filter-Id and VLAN of the rule, with and without a second factor."""
    hook.will("rita", "approved")
    asked = answer_attributes(phone_device.pap("rita", PASSWORD))
    let_in = answer_attributes(Device(tmp_path, pushing.ports.auth).pap("alan", PASSWORD))
    assert (hook.prompts_of("rita"), hook.prompts_of("alan")) == (1, 0)
    assert asked == let_in
    output = "\n".join(asked)
    assert 'Filter-Id = "staff"' in output
    assert "Class = 0x0102030405" in output
    assert 'Tunnel-Private-Group-Id:0 = "42"' in output or 'Tunnel-Private-Group-Id = "42"' in output


# --- codes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("user", "kind"), [("kim", "pap"), ("lea", "chap")])
def test_a_challenge_is_answered(coding: RunningService, code_device: Device, user: str, kind: str) -> None:
    """The code is sent in a second request with the State, by PAP or as a CHAP response. A State can be used once."""
    seed = enrol(coding, user)
    login: Login = getattr(code_device, kind)
    challenge = login(user, PASSWORD)
    assert CHALLENGED in challenge
    assert "Reply-Message" in challenge
    assert event(coding, user)[:2] == ("challenge", "challenge")
    state = state_of(challenge)
    assert ACCEPTED in login(user, next_code(seed), state)
    assert event(coding, user) == ("accept", "accept", "", "local+totp")
    assert REJECTED in login(user, next_code(seed), state)


def test_a_code_appended_to_the_password(coding: RunningService, code_device: Device) -> None:
    """A code that is appended to the password is accepted in one round trip. The same code is not accepted again."""
    seed = enrol(coding, "max")
    together = PASSWORD + next_code(seed)
    assert ACCEPTED in code_device.pap("max", together)
    assert REJECTED in code_device.pap("max", together)
    assert event(coding, "max")[2] == "wrong code"


def test_a_wrong_code(coding: RunningService, code_device: Device) -> None:
    """A wrong code gets another challenge, and the right code is then accepted.

    A wrong code that is appended to the password is rejected.
    """
    seed = enrol(coding, "nell")
    wrong = f"{(int(next_code(seed)) + 1) % 1_000_000:06}"
    again = code_device.pap("nell", wrong, state_of(code_device.pap("nell", PASSWORD)))
    assert CHALLENGED in again
    assert ACCEPTED in code_device.pap("nell", next_code(seed), state_of(again))
    assert REJECTED in code_device.pap("nell", PASSWORD + wrong)


def test_three_wrong_codes_end_the_challenge(coding: RunningService, code_device: Device) -> None:
    """The third wrong code is rejected, and a right code after that is too late."""
    seed = enrol(coding, "olga")
    wrong = f"{(int(next_code(seed)) + 1) % 1_000_000:06}"
    output = code_device.pap("olga", PASSWORD)
    for _ in range(2):
        output = code_device.pap("olga", wrong, state_of(output))
        assert CHALLENGED in output
    last = state_of(output)
    assert REJECTED in code_device.pap("olga", wrong, last)
    assert event(coding, "olga")[2] == "wrong code"
    assert REJECTED in code_device.pap("olga", next_code(seed), last)


def test_a_state_belongs_to_its_station_and_user(tmp_path: Path, coding: RunningService, code_device: Device) -> None:
    """A State is refused for another station and for another user. It stays valid for its owner."""
    seed = enrol(coding, "paul")
    state = state_of(code_device.pap("paul", PASSWORD))
    code = next_code(seed)
    assert REJECTED in Device(tmp_path, coding.ports.auth).pap("paul", code, state)
    assert REJECTED in code_device.pap("quin", code, state)
    assert ACCEPTED in code_device.pap("paul", code, state)


def test_an_unenrolled_user_is_rejected(coding: RunningService, code_device: Device) -> None:
    """A user without a seed is rejected as not enrolled, without a challenge."""
    assert REJECTED in code_device.pap("quin", PASSWORD)
    assert event(coding, "quin")[2] == "not enrolled"


def test_a_challenge_keeps_the_reply_attributes(coding: RunningService, code_device: Device) -> None:
    """The Accept after a challenge has the attributes of the rule. The challenge has none of them."""
    seed = enrol(coding, "rosa")
    challenge = code_device.pap("rosa", PASSWORD)
    assert "Filter-Id" not in challenge
    output = "\n".join(answer_attributes(code_device.pap("rosa", next_code(seed), state_of(challenge))))
    assert 'Filter-Id = "staff"' in output
    assert "Class = 0x0102030405" in output
    assert "Tunnel-Type" in output
