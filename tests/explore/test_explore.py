"""The explorer of the second factor: small instances keep every promise, and planted errors are found."""

from pathlib import Path

import pytest

from sallyport.areas.login.journal import _Batch
from sallyport.areas.login.listen.exchange import Exchange
from sallyport.areas.login.second import repo, service, session, shared
from sallyport.areas.mfa.provider import Outcome
from tests.explore.node import CODE, EMBEDDED, Code
from tests.explore.planted import with_error
from tests.explore.search import Explored, Search
from tests.explore.world import Instance

ALONE = Instance(nodes=1, packets=1)
PAGE = Path(__file__).parents[2] / "docs/architecture/second-factor.md"


def explored(instance: Instance, most: int = 0, seed: int = 0) -> Explored:
    """Explore an instance in a trio of its own."""
    return Search(instance, most=most, seed=seed).run()


@pytest.mark.parametrize(
    "instance",
    [
        pytest.param(Instance(nodes=1, packets=1, copies=1), id="retransmission"),
        pytest.param(Instance(nodes=1, packets=2, code=EMBEDDED), id="embedded"),
        pytest.param(Instance(nodes=1, packets=1, denials=1, code=EMBEDDED), id="embedded with a denial"),
    ],
)
def test_one_node_keeps_every_promise(instance: Instance) -> None:
    """All states of one node with two requests of a login are explored."""
    found = explored(instance)
    assert found.is_complete and found.broken == []
    assert len(found.paths) > 40


@pytest.mark.parametrize(
    "instance",
    [
        pytest.param(Instance(packets=1, copies=1, kills=1), id="kill"),
        pytest.param(Instance(packets=2, shows_challenges=True), id="challenge"),
        pytest.param(Instance(packets=1, copies=1, errors=1), id="errors"),
    ],
)
def test_two_nodes_keep_every_promise(instance: Instance) -> None:
    """Some states of two nodes, taken at random; `make explore` looks at all."""
    found = explored(instance, most=80, seed=1)
    assert found.broken == []
    assert {"SharedCalls.claim", "answered"} <= found.used


@pytest.mark.parametrize(
    ("instance", "code", "promise"),
    [
        pytest.param(
            Instance(packets=2, outcomes=()),
            with_error(repo, "key=new.key or None,\n        user_key", "key=None,\n        user_key"),
            "a second prompt while one is pending",
            id="a login does not join",
        ),
        pytest.param(
            Instance(packets=2),
            with_error(shared, "result.prompt, node):\n        return False", "result.prompt, node):\n        pass"),
            "a second Accept for one approval",
            id="a result is used twice",
        ),
        pytest.param(
            ALONE,
            with_error(
                repo,
                'f"where {_ROW} and consumed_by is null and waiter = :node"',
                'f"where {_ROW} and waiter <> :node"',
            ),
            "the approval of the user is lost",
            id="a result cannot be used",
        ),
        pytest.param(
            Instance(nodes=1, packets=2),
            with_error(repo, "key = case when {is_approved} then key end", "key = null"),
            "a request that crossed the Accept has prompted the user",
            id="a login is not held",
        ),
        pytest.param(
            Instance(nodes=1, packets=2, code=EMBEDDED),
            with_error(service, "self._running.accepted(conversation)", "pass", is_shared=False),
            "a request that crossed the Accept has prompted the user",
            id="a login is not held in memory",
        ),
        pytest.param(
            Instance(packets=1, denials=1),
            with_error(repo, '{_ROW} and owner = :owner "\n        f"returning', '{_ROW} "\n        f"returning'),
            "an Accept after a denial",
            id="an answer after a denial counts",
        ),
        pytest.param(
            Instance(nodes=1, packets=1, denials=1, code=EMBEDDED),
            with_error(service, "if result.reason is Reason.NONE else None", "if False else None", is_shared=False),
            "an Accept after a denial",
            id="an approval in memory counts after a denial",
        ),
        pytest.param(
            Instance(nodes=1, packets=1, outcomes=(Outcome.DENIED,)),
            with_error(service, "Outcome.DENIED: Reason.DENIED,", "Outcome.DENIED: Reason.NONE,"),
            "an Accept that the user has not approved",
            id="a denial counts as an approval",
        ),
        pytest.param(
            ALONE,
            with_error(service, "        conversation.finish(result)\n        if not", "        if not"),
            "a request waits for ever",
            id="a request is not woken",
        ),
    ],
)
def test_a_planted_error_is_found(instance: Instance, code: Code, promise: str) -> None:
    """Without a condition of a transaction, the promise that depends on it is broken."""
    found = explored(Instance(**{**vars(instance), "code": code}), most=2000)
    assert [text for text, _ in found.broken][:1] == [promise]


ANSWERED_BY_B = (
    "A0 packet", "A0 SharedCalls.claim 1", "A0 provider.start 1", "B0 copy 0", "B0 SharedCalls.claim 1",
    "A0 answered 1", "user 0 denied", "A0 provider.poll 1", "A0 answered 1", "second", "B0 read 1",
    "B0 _Batch.write 1", "B0 Exchange.committed 1",
)  # fmt: skip
"""The steps after which node B has answered a login that node A has left to it."""


@pytest.mark.parametrize("forgets", [True, False], ids=["a node forgets what it has left", "as it is"])
def test_a_late_retransmission_is_explored(forgets: bool) -> None:
    """If a node does not remember which requests it has left to others, the explorer finds that a late retransmission
    prompts the user. The search begins near the error, because a whole one takes minutes."""
    wrong = with_error(
        service, "conversation.only_joins = self._running.was_left(login)", "conversation.only_joins = False"
    )
    instance = Instance(packets=1, copies=2, outcomes=(Outcome.DENIED,), code=wrong if forgets else CODE)
    found = Search(instance, most=40, begin=ANSWERED_BY_B).run()
    broken = ["a late retransmission has prompted the user"] if forgets else []
    assert [text for text, _ in found.broken] == broken


def test_the_steps_are_named_in_the_code_and_in_the_documentation() -> None:
    """Each step that runs a transaction or sends an answer is a function of the service, and stands on the page."""
    found = explored(Instance(nodes=1, packets=1, copies=1))
    page = PAGE.read_text()
    places = (repo, shared, session)
    for name in found.used:
        assert f"`{name}`" in page, name
        first, _, rest = name.partition(".")
        owners = [place for place in (*places, _Owners) if hasattr(place, first)]
        assert name.startswith("provider.") or owners, name
        assert not rest or name.startswith("provider.") or hasattr(getattr(owners[0], first), rest), name


class _Owners:
    """Classes of other modules with steps."""

    _Batch = _Batch
    Exchange = Exchange
