"""Tests of MAC authentication bypass by EAP-MD5.

The MAC address is both identity and password, and must be on the domain's list.
"""

import pytest

from sallyport.areas.domains.domain import FirstFactor, Mode, UnknownStations
from sallyport.areas.domains.repo import Update
from sallyport.areas.login.login import Reason
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.radius.attributes import CALLING_STATION_ID, NAS_PORT_TYPE, SERVICE_TYPE, push_attribute
from sallyport.radius.eap.packet import FAILURE, IDENTITY, RESPONSE, Packet, encode
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT
from tests.areas.login.eap.conftest import Nas
from tests.radius.eap.supplicant import Md5Side, MsChapSide, Supplicant

MAC = b"aabbccddeeff"
ETHERNET = push_attribute(NAS_PORT_TYPE, (15).to_bytes(4))
BODY = push_attribute(CALLING_STATION_ID, b"AA-BB-CC-DD-EE-FF") + ETHERNET


async def listed(nas: Nas) -> None:
    """Add the station to the domain's list."""
    areas = nas.wire.areas
    await areas.bypass.add(areas.domain, ["aabbccddeeff"], "a printer")


@pytest.mark.parametrize("name", [MAC, b"AA-BB-CC-DD-EE-FF", b"aa:bb:cc:dd:ee:ff"])
async def test_a_station_on_the_list(nas: Nas, name: bytes) -> None:
    """A listed station logs in with its address as the password. The service needs no certificate for this."""
    nas.wire.areas.credentials = None
    await listed(nas)
    ended = await nas.log_in(Md5Side(name), name, BODY)
    assert (ended.code, ended.rounds) == (ACCESS_ACCEPT, 1)
    assert await nas.outcomes() == [("", name.decode(), "mab")]


async def test_the_rules_know_it_as_a_station(nas: Nas) -> None:
    """If a rule for stations blocks a listed station, EAP ends with a failure."""
    areas = nas.wire.areas
    await listed(nas)
    await areas.rules.add(
        areas.domain, RuleFields.model_validate({"name": "printers", "action": "block", "kinds": ["station"]})
    )
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    ended = await nas.log_in(Md5Side(MAC), MAC, BODY)
    assert (ended.code, ended.eap[0]) == (ACCESS_REJECT, FAILURE)


async def test_whatever_the_first_factor_is(nas: Nas) -> None:
    """MAC authentication bypass works with any first factor of the domain, including an upstream server."""
    areas = nas.wire.areas
    await listed(nas)
    server = {"host": "127.0.0.1", "port": 9, "secret": "not asked at all"}
    domain = areas.domains.table.by_id[areas.domain]
    await areas.first_settings.set(domain, FirstFactor.RADIUS, {"radius": {"servers": [server]}})
    assert (await nas.log_in(Md5Side(MAC), MAC, BODY)).code == ACCESS_ACCEPT
    await areas.first_settings.set(areas.domains.table.by_id[areas.domain], FirstFactor.NONE, {})
    assert (await nas.log_in(Md5Side(MAC), MAC, BODY)).code == ACCESS_ACCEPT


async def test_never_by_accident(nas: Nas) -> None:
    """The bypass does not apply to an unlisted station, a wrong password, the name of another station, a VPN, or an EAP
    method that makes keys."""
    assert (await nas.log_in(Md5Side(MAC), MAC, BODY)).code == ACCESS_REJECT
    await listed(nas)
    virtual = push_attribute(CALLING_STATION_ID, MAC) + push_attribute(NAS_PORT_TYPE, (5).to_bytes(4))
    for side, name, body in (
        (Md5Side(b"hello"), MAC, BODY),
        (Md5Side(MAC), MAC, ETHERNET),
        (Md5Side(MAC), MAC, push_attribute(CALLING_STATION_ID, b"AA-BB-CC-DD-EE-00") + ETHERNET),
        (Md5Side(MAC), MAC, virtual),
        (MsChapSide(MAC, MAC), MAC, BODY),
    ):
        assert (await nas.log_in(side, name, body)).code == ACCESS_REJECT


@pytest.mark.parametrize("mode", Mode)
async def test_rules_decide_about_an_unknown_station(nas: Nas, mode: Mode) -> None:
    """If rules decide about unknown stations, they also decide by EAP-MD5, in both modes. A wrong password is refused.
    The station does not get into the inventory, and its failures lock out nobody."""
    areas = nas.wire.areas
    await areas.domains.set_mode([areas.domain], mode)
    await areas.domains.update(areas.domain, Update(settings={"unknown_stations": UnknownStations.RULES}))
    assert (await nas.log_in(Md5Side(MAC), MAC, BODY)).code == ACCESS_REJECT
    fields = {"name": "guests", "action": "allow", "kinds": ["unknown"], "vlan": "99"}
    await areas.rules.add(areas.domain, RuleFields.model_validate(fields))
    ended = await nas.log_in(Md5Side(MAC), MAC, BODY)
    assert ended.code == ACCESS_ACCEPT
    for _ in range(12):
        assert (await nas.log_in(Md5Side(b"hello"), MAC, BODY)).code == ACCESS_REJECT
    assert [reason for reason, *_ in await nas.outcomes()][:2] == [Reason.UNKNOWN_STATION, ""]
    assert Reason.LOCKED_OUT not in {reason for reason, *_ in await nas.outcomes()}
    assert await areas.store.read(lambda tx: tx.value(int, "select count(*) from stations")) == 0


@pytest.mark.parametrize("first_factor", [FirstFactor.LOCAL, FirstFactor.LDAP])
async def test_an_invented_address_is_no_station_of_the_inventory(nas: Nas, first_factor: FirstFactor) -> None:
    """No round of a conversation adds an unlisted station to the inventory, also if the first factor cannot check
    EAP-MD5. The station is noted as an unknown one."""
    areas = nas.wire.areas
    if first_factor is FirstFactor.LDAP:  # it cannot check EAP-MD5
        ldap = {"servers": ["ldaps://127.0.0.1:9"], "baseDN": "dc=example"}
        await areas.first_settings.set(areas.domains.table.by_id[areas.domain], first_factor, {"ldap": ldap})
    assert (await nas.log_in(Md5Side(MAC), MAC, BODY)).code == ACCESS_REJECT
    await nas.outcomes()
    assert await areas.store.read(lambda tx: tx.value(int, "select count(*) from stations")) == 0
    await areas.bypass.unknown.flush()
    assert (await areas.bypass.unknown.page(areas.domain, "", offset=0, limit=1))[1] == 1


async def test_an_address_in_the_last_round_hides_no_guess(nas: Nas) -> None:
    """A NAS cannot keep wrong passwords of a user from being counted by naming a station in the last round."""
    areas = nas.wire.areas
    await areas.domains.update(areas.domain, Update(settings={"unknown_stations": UnknownStations.RULES}))
    for _ in range(11):
        supplicant, state, name = Supplicant(b"ann", Md5Side(b"a guess")), b"", b"ann"
        response = encode(Packet(RESPONSE, 0, IDENTITY, b"ann"))
        code = ACCESS_CHALLENGE
        while code == ACCESS_CHALLENGE:
            datagram = nas.request(response, name, state, BODY)
            nas.wire.put(datagram)
            ended, state = await nas.answer(datagram)
            code, name = ended.code, MAC
            response = supplicant.respond(ended.eap) if code == ACCESS_CHALLENGE else b""
        assert code == ACCESS_REJECT
    assert (await nas.log_in(Md5Side(b"hello"), b"ann")).code == ACCESS_REJECT
    assert Reason.LOCKED_OUT in {reason for reason, *_ in await nas.outcomes()}


async def test_taken_off_in_the_middle(nas: Nas) -> None:
    """If a station is removed from the list before its response arrives, it is rejected."""
    await listed(nas)
    side = Md5Side(MAC)
    areas = nas.wire.areas

    datagram = nas.request(encode(Packet(RESPONSE, 0, IDENTITY, MAC)), MAC, b"", BODY)
    nas.wire.put(datagram)
    ended, state = await nas.answer(datagram)
    await areas.bypass.delete(areas.domain, ["aabbccddeeff"])
    datagram = nas.request(Supplicant(MAC, side).respond(ended.eap), MAC, state, BODY)
    nas.wire.put(datagram)
    ended, _ = await nas.answer(datagram)
    assert ended.code == ACCESS_REJECT


@pytest.mark.parametrize(
    ("forms", "password", "body", "code"),
    [
        ("password", b"a word", BODY, ACCESS_ACCEPT),
        ("password", MAC, BODY, ACCESS_ACCEPT),
        ("password", b"another word", BODY, ACCESS_REJECT),
        ("password,no-station", b"a word", ETHERNET, ACCESS_ACCEPT),
        ("password,login-user", b"a word", BODY + push_attribute(SERVICE_TYPE, (1).to_bytes(4)), ACCESS_ACCEPT),
        ("no-station", b"a word", BODY, ACCESS_REJECT),
        ("no-station", MAC, ETHERNET, ACCESS_ACCEPT),
    ],
)
async def test_forms_of_the_client(nas: Nas, forms: str, password: bytes, body: bytes, code: int) -> None:
    """The forms of the RADIUS client apply to EAP-MD5 too."""
    areas = nas.wire.areas
    await listed(nas)
    word = b"a word" if "password" in forms else None
    client = areas.clients.find(("192.0.2.1", 1))
    assert client is not None
    await areas.clients.update(areas.tenant, client.id, {"mac_forms": forms}, mac_password=word)
    assert (await nas.log_in(Md5Side(password), MAC, body)).code == code
    assert [method for *_, method in await nas.outcomes()] == ["mab" if code == ACCESS_ACCEPT else "eap-md5"]


OTHER = push_attribute(CALLING_STATION_ID, b"AA-BB-CC-DD-EE-00") + ETHERNET


@pytest.mark.parametrize(
    ("identity", "names", "bodies"),
    [
        (b"ann", (MAC, MAC), (BODY, BODY)),
        (MAC, (MAC, MAC), (BODY, OTHER)),
        (MAC, (MAC, b"ann"), (BODY, BODY)),
    ],
)
async def test_every_round_is_about_the_station(
    nas: Nas, identity: bytes, names: tuple[bytes, bytes], bodies: tuple[bytes, bytes]
) -> None:
    """An EAP identity of a user, or a last round for another station or user, admits nobody. Otherwise the event and
    the login rules would have a name whose password nobody has checked."""
    await listed(nas)
    datagram = nas.request(encode(Packet(RESPONSE, 0, IDENTITY, identity)), names[0], b"", bodies[0])
    nas.wire.put(datagram)
    ended, state = await nas.answer(datagram)
    datagram = nas.request(Supplicant(MAC, Md5Side(MAC)).respond(ended.eap), names[1], state, bodies[1])
    nas.wire.put(datagram)
    ended, _ = await nas.answer(datagram)
    assert (ended.code, ended.names) == (ACCESS_REJECT, [])
