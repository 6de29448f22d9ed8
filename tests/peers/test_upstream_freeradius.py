"""Tests of FreeRADIUS as the home server behind the service, and as both proxy and home server."""

import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.peers.eapol import KEYS, SUCCESS, eapol_test
from tests.peers.freeradius_home import PASSWORD, Home, freeradius_home
from tests.peers.hook import Hook
from tests.peers.programs import needs, radclient
from tests.peers.second_factor import ACCEPTED, ONE, REJECTED, SIGNED, answer_attributes, event, provide
from tests.peers.test_freeradius_proxy import CISCO, HOME_SECRET, PROXY, freeradius
from tests.running_service import RunningService, running_service

SECRET = "between-nas-and-service"
GRANTED = ["Class = 0x00ff636c617373", "Tunnel-Type:0 = VLAN", 'Tunnel-Private-Group-Id:0 = "20"']

pytestmark = [pytest.mark.peer, needs("freeradius", "radclient")]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    """Yield the home server."""
    with freeradius_home(tmp_path_factory.mktemp("home")) as home:
        yield home


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory, home: Home) -> Iterator[RunningService]:
    """Yield a service whose first domain passes its logins on to the home server."""
    with passing_on(tmp_path_factory.mktemp("nas"), home) as service:
        yield service


@contextmanager
def passing_on(directory: Path, home: Home, **fields: object) -> Iterator[RunningService]:
    """Yield the service. It has a NAS as a RADIUS client."""
    own = directory / "service"
    own.mkdir()
    with running_service(own, {"SALLYPORT_REJECT_DELAY_S": "0"}) as service:
        service.add_client("devices", "127.0.0.1", SECRET)
        set_first(service, home, **fields)
        yield service


def set_first(service: RunningService, home: Home, **fields: object) -> None:
    """Pass the logins of the first domain on to the home server."""
    body = {"firstFactor": "radius", "radius": {"servers": [home.fields], "namesInnerUser": True, **fields}}
    service.post("/ad/SetFirstFactor", {**ONE, **body})


def ask(directory: Path, service: RunningService, *attributes: str) -> str:
    """Log in with radclient, and return its output."""
    return radclient(directory, "auth", f"127.0.0.1:{service.ports.auth}", SECRET, [*attributes, SIGNED], wait_s=20)


@pytest.mark.parametrize("kind", ["User-Password", "CHAP-Password", "MS-CHAP-Password"])
def test_passwords_of_each_kind(tmp_path: Path, service: RunningService, home: Home, kind: str) -> None:
    """FreeRADIUS checks the login as if the NAS had sent it, and the NAS receives the attributes of FreeRADIUS's
    answer."""
    output = ask(tmp_path, service, 'User-Name = "ann"', f'{kind} = "{PASSWORD}"')
    assert ACCEPTED in output
    assert set(GRANTED) <= set(answer_attributes(output))
    output = ask(tmp_path, service, 'User-Name = "ann"', f'{kind} = "wrong"')
    assert REJECTED in output
    assert 'Reply-Message = "not today"' in output
    assert event(service, "ann") == ("reject", "reject", "refused by the upstream server", "radius")


@pytest.mark.parametrize("name", ["x" * 253, "ü" * 126, "z\\374e", "NUL\\000"])
def test_names_of_any_octets(tmp_path: Path, service: RunningService, name: str) -> None:
    """User-Name may have up to 253 octets, whatever they are."""
    assert ACCEPTED in ask(tmp_path, service, f'User-Name = "{name}"', f'User-Password = "{PASSWORD}"')


def test_the_nas_gets_its_proxy_state_back(tmp_path: Path, service: RunningService, home: Home) -> None:
    """The NAS gets its own Proxy-State.

    It does not get that of the service, which followed it in the request to FreeRADIUS.
    """
    output = ask(tmp_path, service, 'User-Name = "ann"', f'User-Password = "{PASSWORD}"', "Proxy-State = 0x6e6173")
    assert re.findall(r"Proxy-State = (0x\w+)", output.partition(ACCEPTED)[2]) == ["0x6e6173"]
    received = home.output().rpartition("Received Access-Request")[2].partition("authorize")[0]
    assert len(re.findall(r"Proxy-State = (0x\w+)", received)) == 2


def test_freeradius_drops_no_packet(service: RunningService, home: Home) -> None:
    """FreeRADIUS answers Status-Server, and has dropped no packet from the service."""
    assert "Received Status-Server" in home.output()
    metrics = service.request("GET", "/metrics").text
    assert 'sallyport_upstream_servers{domain="1",state="alive"} 1.0' in metrics
    assert "sallyport_upstream_discards_total{" not in metrics


@needs("eapol_test")
@pytest.mark.parametrize(
    "method",
    [
        'eap=PEAP\nphase2="auth=MSCHAPV2"',
        'eap=TTLS\nphase2="auth=PAP"',
        'eap=TTLS\nphase2="autheap=MSCHAPV2"',
        "eap=TLS",
    ],
)
def test_eap_with_keys(tmp_path: Path, service: RunningService, home: Home, method: str) -> None:
    """The EAP conversation is passed on, and the station has the keys."""
    network = f'{method}\nidentity="ann"\npassword="{PASSWORD}"\nca_cert="{home.certificate}"\n'
    network += f'client_cert="{home.certificate}"\nprivate_key="{home.key}"'
    output = eapol_test(tmp_path, service.ports.auth, SECRET, network)
    assert SUCCESS in output
    assert KEYS in output
    assert event(service, "ann")[1] == "accept"


@needs("eapol_test")
def test_eap_with_a_wrong_password(tmp_path: Path, service: RunningService, home: Home) -> None:
    """The station receives EAP-Failure, and one event is recorded."""
    before = service.rows("select count(*) from events")[0][0]
    network = f'eap=PEAP\nphase2="auth=MSCHAPV2"\nidentity="ann"\npassword="wrong"\nca_cert="{home.certificate}"'
    output = eapol_test(tmp_path, service.ports.auth, SECRET, network)
    assert SUCCESS not in output
    assert "EAP-Failure" in output or "EAP: Received EAP-Failure" in output
    assert service.rows("select count(*) from events")[0][0] == before + 1
    assert event(service, "ann")[1] == "reject"


@needs("eapol_test")
def test_a_push_after_eap(tmp_path: Path, home: Home) -> None:
    """The keys in FreeRADIUS's Accept are kept while the second factor is pending."""
    with Hook() as hook, passing_on(tmp_path, home) as service:
        provide(service, "webhook", **hook.fields)
        hook.will("ann", "approved", after_s=1)
        service.set_mode("default", "enforce")
        network = (
            f'eap=PEAP\nphase2="auth=MSCHAPV2"\nidentity="ann"\npassword="{PASSWORD}"\nca_cert="{home.certificate}"'
        )
        output = eapol_test(tmp_path, service.ports.auth, SECRET, network)
        assert SUCCESS in output
        assert KEYS in output
        assert event(service, "ann") == ("accept", "accept", "", "radius+webhook")


@needs("eapol_test")
@pytest.mark.parametrize("method", ['eap=PEAP\nphase2="auth=MSCHAPV2"', 'eap=TTLS\nphase2="auth=PAP"'])
def test_the_inner_name_is_asked(tmp_path: Path, home: Home, method: str) -> None:
    """With the configuration of the guide, FreeRADIUS puts the name inside the tunnel into its Accept. So a supplicant
    that writes another person into the outer identity sends no prompt to this person."""
    with Hook() as hook, passing_on(tmp_path, home) as service:
        provide(service, "webhook", **hook.fields)
        hook.will("mallory", "approved")
        hook.will("ann", "denied")
        service.set_mode("default", "enforce")
        network = f'{method}\nanonymous_identity="mallory"\nidentity="ann"\npassword="{PASSWORD}"\n'
        assert SUCCESS not in eapol_test(tmp_path, service.ports.auth, SECRET, f'{network}ca_cert="{home.certificate}"')
        assert event(service, "ann")[1] == "reject"
        assert (hook.prompts_of("ann"), hook.prompts_of("mallory")) == (1, 0)


@needs("eapol_test")
@pytest.mark.parametrize("method", ['eap=PEAP\nphase2="auth=MSCHAPV2"', 'eap=TTLS\nphase2="auth=PAP"'])
def test_nobody_is_asked_for_an_outer_identity(tmp_path: Path, method: str) -> None:
    """By default, FreeRADIUS does not name the user inside EAP. Then no person gets a prompt, neither the one of the
    outer identity nor the one whose password is right."""
    own = tmp_path / "home"
    own.mkdir()
    with (
        Hook() as hook,
        freeradius_home(own, names_inner_user=False) as home,
        passing_on(tmp_path, home, namesInnerUser=False) as service,
    ):
        provide(service, "webhook", **hook.fields)
        hook.will("mallory", "approved")
        hook.will("ann", "approved")
        service.set_mode("default", "enforce")
        network = f'{method}\nanonymous_identity="mallory"\nidentity="ann"\npassword="{PASSWORD}"\n'
        assert SUCCESS not in eapol_test(tmp_path, service.ports.auth, SECRET, f'{network}ca_cert="{home.certificate}"')
        assert event(service, "") == ("reject", "reject", "no user name", "radius")
        assert hook.prompts == []


def test_unsigned_answers(tmp_path: Path) -> None:
    """FreeRADIUS 3.2.1 does not sign its answers by default. They are accepted only if an admin allows it."""
    own = tmp_path / "home"
    own.mkdir()
    login = ('User-Name = "ann"', f'User-Password = "{PASSWORD}"')
    with (
        freeradius_home(own, signs=False) as home,
        passing_on(tmp_path, home, requireMessageAuthenticator=False) as service,
    ):
        assert ACCEPTED in ask(tmp_path, service, *login)
        set_first(service, home, responseWindowSeconds=1)
        assert REJECTED in ask(tmp_path, service, *login)
        assert event(service, "ann")[2] == "first factor unreachable"
        assert "requireMessageAuthenticator" in service.log()


def test_freeradius_on_both_sides(tmp_path: Path, home: Home) -> None:
    """With a proxy in front of the service and a home server behind it, verdicts and attributes are passed on, and each
    one gets its own Proxy-State."""
    with passing_on(tmp_path, home) as service:
        service.add_client("proxy", PROXY, HOME_SECRET)
        raddb = tmp_path / "raddb"
        raddb.mkdir()
        with freeradius(raddb, service) as proxy:
            output = proxy.login(CISCO, PASSWORD, "Proxy-State = 0x6e6173")
            assert ACCEPTED in output
            assert set(GRANTED) <= set(answer_attributes(output))
            assert "Proxy-State = 0x6e6173" in output.partition(ACCEPTED)[2]
            assert REJECTED in proxy.login(CISCO, "wrong")


def test_a_restart_of_the_home_server(tmp_path: Path) -> None:
    """While the home server is not running, logins wait.

    When it runs again, the next retransmission of the NAS is answered.
    """
    own = tmp_path / "home"
    own.mkdir()
    with freeradius_home(own) as home, passing_on(tmp_path, home) as service:
        login = ('User-Name = "ann"', f'User-Password = "{PASSWORD}"', SIGNED)
        assert ACCEPTED in ask(tmp_path, service, *login[:2])
        home.stop()
        with ThreadPoolExecutor(1) as pool:
            server = f"127.0.0.1:{service.ports.auth}"
            waiting = pool.submit(radclient, tmp_path, "auth", server, SECRET, login, tries=20, wait_s=0.9)
            time.sleep(2)
            home.start()
            assert ACCEPTED in waiting.result()
    assert [row[0] for row in service.rows("select applied_decision from events order by id")] == ["accept", "accept"]
