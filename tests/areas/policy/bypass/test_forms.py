"""Tests of the forms of MAC authentication bypass that are a setting of the RADIUS client."""

import pytest

from sallyport.areas.clients.client import Client, MacForm, joined_forms
from sallyport.areas.clients.service import NewClient
from sallyport.areas.login.login import Verdict
from sallyport.base.errors import Forbidden, Invalid
from sallyport.web.scope import Role
from tests.areas import Areas
from tests.areas.login.conftest import FakeListener
from tests.areas.policy.bypass.test_service import LISTED, LOGIN, MAC, OTHERS, VIRTUAL, body
from tests.packets import attributes, chap, pap

AUTHENTICATE_ONLY = 8
WORD = b"word of all stations"
BARE = attributes(NAS_PORT_TYPE=(15).to_bytes(4))
ALL = joined_forms(MacForm)
FORMS = {
    "Login-User": ("login-user", pap(MAC, MAC, body(service=LOGIN))),
    "Login-User, CHAP": ("login-user", chap(MAC, MAC, body=body(service=LOGIN))),
    "Login-User, no password": ("login-user", pap(MAC, "", body(service=LOGIN))),
    "Authenticate-Only": ("authenticate-only", pap(MAC, MAC, body(service=AUTHENTICATE_ONLY))),
    "no station": ("no-station", pap(MAC, MAC, BARE)),
    "no station, unsigned": ("no-station", pap(MAC, MAC, BARE, signed=False)),
    "a word": ("password", pap(MAC, WORD, body())),
    "a word, CHAP": ("password", chap(MAC, WORD, body=body())),
    "all of them": (ALL, pap(MAC, WORD, BARE + attributes(SERVICE_TYPE=LOGIN.to_bytes(4)))),
}


async def client(areas: Areas, forms: str, address: str = "192.0.2.9/32") -> Client:
    """Add a client with these forms, and a station."""
    await areas.bypass.add(areas.domain, [MAC])
    word = WORD if MacForm.PASSWORD in forms.split(",") else b""
    return await areas.client(address, mac_forms=forms, mac_password=word)


@pytest.mark.parametrize(("form", "request_"), FORMS.values(), ids=FORMS)
async def test_a_form_of_the_client(listener: FakeListener, form: str, request_: bytes) -> None:
    """A listed station is accepted in a form of its client. Without the form, the request is an ordinary login. The
    event has the station in both cases."""
    areas = listener.areas
    login = listener.login(request_, await client(areas, form))
    decision = areas.pipeline.begin(login)
    assert decision is not None and decision.applied is Verdict.ACCEPT
    assert (login.method, login.station.replace("-", "").lower(), login.behind is not None) == ("mab", MAC, True)
    others = joined_forms(set(MacForm) - {MacForm(each) for each in form.split(",")})
    for given in {"", others}:
        plain = listener.login(request_, await client(areas, given, f"192.0.2.{10 + len(given)}/32"))
        assert (await listener.decide(plain)).applied is Verdict.REJECT
        assert plain.method != "mab"


@pytest.mark.parametrize("request_", LISTED.values(), ids=LISTED)
async def test_the_usual_form_remains(listener: FakeListener, request_: bytes) -> None:
    """A client with all forms still sends the usual form, in which the password is the address."""
    login = listener.login(request_, await client(listener.areas, ALL))
    assert (await listener.decide(login)).applied is Verdict.ACCEPT


REFUSED = {
    **{name: each for name, each in OTHERS.items() if name not in {"an admin at a switch", "no station"}},
    "the word, unsigned": pap(MAC, WORD, body(), signed=False),
    "the word, unsigned CHAP": chap(MAC, WORD, body=body(), signed=False),
    "another word": pap(MAC, WORD + b"!", body()),
    "a part of the word": pap(MAC, WORD[:-1], body()),
    "a person with the word": pap("ann", WORD, BARE),
    "another station with the word": pap(MAC, WORD, body("AA-BB-CC-DD-EE-00")),
    "an empty station": pap(MAC, WORD, attributes(CALLING_STATION_ID=b"") + BARE),
    "a VPN with the word": pap(MAC, WORD, body(port=VIRTUAL)),
    "another Service-Type": pap(MAC, WORD, body(service=6)),
    "a station that is not listed": pap("aabbccddee00", WORD, BARE),
}


@pytest.mark.parametrize("request_", REFUSED.values(), ids=REFUSED)
async def test_other_requests_are_ordinary_logins(listener: FakeListener, request_: bytes) -> None:
    """Even if a client has all forms, other requests are ordinary logins."""
    login = listener.login(request_, await client(listener.areas, ALL))
    decision = await listener.decide(login)
    assert (decision.applied, login.method != "mab") == (Verdict.REJECT, True)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"mac_forms": "password"}, "macPassword"),
        ({"mac_forms": "login-user", "mac_password": WORD}, "macPassword"),
        ({"mac_password": WORD}, "macPassword"),
        ({"mac_forms": "password", "mac_password": WORD, "network": "192.0.2.0/30"}, "macForms"),
    ],
    ids=["no word", "a word without its form", "a word without forms", "a network"],
)
async def test_a_word_needs_its_form_and_one_address(areas: Areas, changes: dict[str, str | bytes], field: str) -> None:
    """The form `password` needs a password and a client with a single address, when a client is added and when it is
    changed."""
    with pytest.raises(Invalid) as added:
        await areas.clients.add(areas.tenant, NewClient(**{"name": "a", "network": "192.0.2.1/32", **changes}))  # type: ignore[arg-type]
    assert [each.field for each in added.value.errors] == [field]
    known, word = await areas.client(), changes.pop("mac_password", None)
    with pytest.raises(Invalid) as changed:
        await areas.clients.update(areas.tenant, known.id, {**changes}, mac_password=word)  # type: ignore[arg-type]
    assert [each.field for each in changed.value.errors] == [field]
    assert WORD.decode() not in str(changed.value)


async def test_a_client_with_a_word_gets_no_network(areas: Areas) -> None:
    """The address of a client with the form `password` cannot become a network. The forms that prove the address may
    have one."""
    known = await client(areas, ALL)
    with pytest.raises(Invalid, match="macForms"):
        await areas.clients.update(areas.tenant, known.id, {"network": "192.0.2.0/28"})
    wide = await areas.clients.update(
        areas.tenant, known.id, {"network": "192.0.2.0/28", "mac_forms": "login-user,no-station"}
    )
    assert (wide.mac_forms, wide.mac_password) == ({"login-user", "no-station"}, None)


async def test_the_word_is_changed_and_removed(listener: FakeListener) -> None:
    """A new word holds from the next request on. Without its form, the word is removed from the store."""
    areas, request_ = listener.areas, FORMS["a word"][1]
    known = await client(areas, "password")
    for word, verdict in ((b"another", Verdict.REJECT), (WORD, Verdict.ACCEPT)):
        now = await areas.clients.update(areas.tenant, known.id, {}, mac_password=word)
        assert (await listener.decide(listener.login(request_, now))).applied is verdict
    await areas.clients.update(areas.tenant, known.id, {"mac_forms": ""})
    count = "select count(*) from radius_clients where mac_password is not null"
    assert await areas.store.read(lambda tx: tx.value(int, count)) == 0


async def test_the_word_is_sealed(areas: Areas) -> None:
    """The word is a sealed value of its row, which a rotation of the master key seals again. The audit trail and the
    memory do not show it."""
    known = await client(areas, "password")
    sealed = await areas.store.read(lambda tx: tx.value(bytes, "select mac_password from radius_clients"))
    (column,) = [each for each in areas.app.areas.sealed if each.column == "mac_password"]
    assert sealed is not None and areas.vault.open(sealed, column.identity.format(known.id)) == WORD
    await areas.clients.update(areas.tenant, known.id, {}, mac_password=b"another word")
    trail = await areas.store.read(lambda tx: tx.rows("select changes from audit_trail where target like 'client%'"))
    text = str(trail) + repr(known.mac_password)
    assert "macPassword" in text and "macForms" in text
    assert WORD.decode() not in text and "another word" not in text


async def test_an_operator_changes_no_forms(areas: Areas) -> None:
    """Forms and word decide about trust, so an operator may not change them."""
    known = await client(areas, "password")
    for changes, word in (({"mac_forms": ""}, None), ({}, b"another word")):
        with pytest.raises(Forbidden):
            await areas.clients.update(areas.tenant, known.id, {**changes}, mac_password=word, by=Role.OPERATOR)
    same = await areas.clients.update(areas.tenant, known.id, {"mac_forms": "password"}, by=Role.OPERATOR)
    assert same.mac_password is not None


async def test_the_word_survives_a_reload(listener: FakeListener) -> None:
    """A reload for another reason keeps the forms and the word of a client."""
    areas = listener.areas
    known = await client(areas, "password,no-station")
    await areas.client("192.0.2.200/32")
    now = areas.clients.table.present(known.id)
    assert (now.mac_forms, now.mac_password) == (known.mac_forms, known.mac_password)
    assert now.over_tls().mac_password == known.mac_password
