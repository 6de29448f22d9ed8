"""Tests of the plan of an import: making the plan changes nothing, and the plan contains only differences."""

from sallyport.areas.clients.client import Client, ClientTable
from sallyport.areas.clients.plan import Action, Step, Wanted, plan

SECRET = b"a-Secret-of-22-octets!"
MINE, THEIRS = 1, 2


def existing(client_id: int, name: str, network: str, *, tenant: int = MINE, product: str = "") -> Client:
    """Return an existing client."""
    return Client(
        id=client_id,
        tenant_id=tenant,
        name=name,
        network=network,
        secret=SECRET,
        all_domains=0,
        domain_ids=(5,),
        product=product,
        require_message_authenticator="auto",
        limit_proxy_state="auto",
        password_verified=0,
        signed_since=1,
        proxy_state_limited_since=None,
    )


def wanted(name: str, network: str, **more: object) -> Wanted:
    """Return a client as read from a file, with default values."""
    fields: dict[str, object] = {
        "secret": SECRET,
        "product": None,
        "require_message_authenticator": "auto",
        "limit_proxy_state": "auto",
        "domain_ids": None,
    }
    return Wanted(name=name, network=network, **{**fields, **more})  # type: ignore[arg-type]


def steps(*files: Wanted, clients: tuple[Client, ...] = ()) -> list[Step]:
    """Return the plan for the first tenant."""
    return plan(files, MINE, ClientTable(clients))


def test_an_unknown_name_is_added() -> None:
    """A client of another tenant with the same name is ignored."""
    (step,) = steps(wanted("gate", "192.0.2.1/32"), clients=(existing(1, "gate", "198.51.100.1/32", tenant=THEIRS),))
    assert step.action is Action.NEW


def test_an_equal_client_is_unchanged() -> None:
    """Fields that the file cannot contain, such as product and domains, are not a difference."""
    (step,) = steps(wanted("gate", "192.0.2.1/32"), clients=(existing(1, "gate", "192.0.2.1/32", product="Cisco ISE"),))
    assert (step.action, step.changes()) == (Action.UNCHANGED, [])


def test_only_different_fields_are_changed() -> None:
    """An unchanged setting is not written again, because that would reset what the client has learned."""
    change = wanted("Gate", "192.0.2.9/32", secret=b"another", product="Cisco IOS", domain_ids=(6,))
    (step,) = steps(change, clients=(existing(1, "gate", "192.0.2.1/32"),))
    assert (step.action, step.client_id) == (Action.CHANGED, 1)
    assert step.changes() == ["name", "address", "product", "secret", "domains"]
    assert (step.secret, step.domain_ids) == (b"another", (6,))
    (step,) = steps(wanted("gate", "192.0.2.1/32", secret=b"another"), clients=(existing(1, "gate", "192.0.2.1/32"),))
    assert step.columns == {}


def test_an_impossible_client_is_refused_with_its_reason() -> None:
    """The plan refuses repeated names and addresses, names and addresses that are already used, ranges of other
    tenants, and invalid names and secrets."""
    clients = (existing(1, "owner", "192.0.2.1/32"), existing(2, "foreign", "198.51.100.0/24", tenant=THEIRS))
    found = steps(
        wanted("first", "192.0.2.2/32"),
        wanted("FIRST", "192.0.2.3/32"),
        wanted("second", "192.0.2.2/32"),
        wanted("thief", "192.0.2.1/32"),
        wanted("inside", "198.51.100.7/32"),
        wanted("around", "198.51.0.0/16"),
        wanted("bell\a", "192.0.2.4/32"),
        wanted("", "192.0.2.5/32"),
        wanted("long", "192.0.2.6/32", secret=b"x" * 129),
        wanted("owner", "192.0.2.7/32"),
        clients=clients,
    )
    assert [step.action for step in found] == [Action.NEW, *[Action.REFUSED] * 8, Action.CHANGED]
    parts = (
        "used twice",
        "first in the file",
        "client owner",
        "another tenant",
        "another tenant",
        "name",
        "name",
        "secret",
    )
    assert all(part in step.reason for part, step in zip(parts, found[1:9], strict=True))
    assert not any(SECRET.decode() in step.reason for step in found)
