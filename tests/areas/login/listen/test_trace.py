"""The traces of logins whose second factor several requests wait for."""

import pytest

from sallyport.areas.login.login import Answered, Decision, Login
from sallyport.areas.login.spans import FinishedLogin, exports_to
from sallyport.areas.mfa.provider import Outcome
from sallyport.base.trace import current
from sallyport.outgoing.spans import Finished
from sallyport.radius.attributes import STATE
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE
from tests.areas.login.listen.conftest import Wire
from tests.areas.login.listen.second import SESSION, a_login, answer, events, joined, prompted, script, typed, wire
from tests.areas.login.second.scripted import Script

__all__ = ["script", "wire"]


@pytest.fixture
def exported(wire: Wire) -> list[Finished]:
    """Return the list that gets the logins of the exporter."""
    found: list[Finished] = []
    wire.areas.journal._on_answered = exports_to(found.extend)
    return found


async def test_a_challenge_and_its_answer_have_different_spans(
    wire: Wire, script: Script, exported: list[Finished]
) -> None:
    """Both requests wait for the same prompt, and each has an event of the same trace. No id of a span occurs twice."""
    traces = []
    script.busy = lambda: traces.append(current())
    wire.areas.patience = 0.3
    first = a_login()
    wire.put(first)
    await prompted(script)
    wire.areas.clock.pass_by(1)
    code, found = await answer(wire, first)
    assert code == ACCESS_CHALLENGE
    wire.areas.patience = 20
    second = typed("", found[STATE])
    wire.put(second)
    await joined(wire, 1)
    wire.areas.clock.pass_by(1)
    script.answer(0, Outcome.APPROVED)
    assert (await answer(wire, second))[0] == ACCESS_ACCEPT
    (of_prompt,) = traces
    assert of_prompt is not None
    assert [each.trace_id for each in await events(wire.areas)] == [of_prompt.id] * 2
    spans = [span for each in exported for span in each.spans()]
    assert {each.trace_id for each in spans} == {of_prompt.id}
    assert len({each.span_id for each in spans}) == len(spans) == 8
    assert [each.name for each in spans if each.span_id == of_prompt.span] == ["second factor"]


async def test_a_request_that_joins_continues_in_the_trace_of_the_first(
    wire: Wire, script: Script, exported: list[Finished]
) -> None:
    """What its task logs has the trace of its event. It replaces the first request, so it has its span too."""
    concluded: list[tuple[Answered, bool]] = []
    conclude = wire.auth.pending._conclude

    def observe(login: Login, decision: Decision | None) -> None:
        concluded.append((login, current() is login.trace))
        conclude(login, decision)

    wire.auth.pending._conclude = observe
    first, second = a_login(SESSION), a_login(SESSION)
    wire.put(first)
    await prompted(script)
    wire.put(second)
    await joined(wire, 1)
    wire.areas.clock.pass_by(1)
    script.answer(0, Outcome.APPROVED)
    assert (await answer(wire, second))[0] == ACCESS_ACCEPT
    assert [is_same for _, is_same in concluded] == [True, True]
    (of_prompt,) = {login.trace for login, _ in concluded if isinstance(login, Login)}
    (finished,) = exported
    assert isinstance(finished, FinishedLogin) and finished.trace == of_prompt
