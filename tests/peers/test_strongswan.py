"""Tests of strongSwan as the NAS: a gateway whose eap-radius asks the service, and a station that connects by IKEv2.

Gateway and station are machines of their own with a cable between them. The service is on the gateway's machine and
passes EAP on to FreeRADIUS. The tunnels are strongSwan's own (kernel-libipsec), because not every kernel has ESP.
"""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.peers.authority import Authority
from tests.peers.freeradius import eventually
from tests.peers.freeradius_home import PASSWORD, freeradius_home
from tests.peers.hook import Hook
from tests.peers.namespace import Machine, connect, may_unshare
from tests.peers.programs import find, needs
from tests.peers.second_factor import event, provide
from tests.peers.test_openvpn import sessions
from tests.running_service import RunningService, running_service

BEGIN_CERTIFICATE = "-----BEGIN CERTIFICATE-----"
SECRET = "between-gateway-and-service"
GATEWAY, STATION, INSIDE = "10.96.0.1", "10.96.0.2", "10.95.0.1"
LIMIT_S = "30"
ESTABLISHED, TUNNEL = "established between", "initiate completed successfully"
PEOPLE = {"ann": PASSWORD, "pia": PASSWORD, "eve": PASSWORD, "bob": "not the password"}
OTHER_KEYS_FOR_EVE = """\
if (&User-Name == "eve") {
    update reply {
        &MS-MPPE-Recv-Key := 0x000102030405060708090a0b0c0d0e0f
    }
}"""
STRONGSWAN = """\
charon-systemd {
    load_modular = no
    load = random nonce kdf openssl pem pkcs1 pkcs8 pubkey x509 constraints kernel-libipsec kernel-netlink \
socket-default vici eap-identity eap-mschapv2 eap-radius
    filelog {
        stderr {
            default = 1
        }
    }
    plugins {
        eap-radius {
            accounting = yes
            servers {
                service {
                    address = 127.0.0.1
                    auth_port = %d
                    acct_port = %d
                    secret = %s
                }
            }
        }
    }
}
"""
DIALLED = f"""\
connections {{
    vpn {{
        version = 2
        local_addrs = {GATEWAY}
        pools = people
        send_cert = always
        local {{
            auth = pubkey
            certs = gateway.pem
            id = vpn.example
        }}
        remote {{
            auth = eap-radius
            id = %any
            eap_id = %any
        }}
        children {{
            inside {{
                local_ts = {INSIDE}/24
            }}
        }}
    }}
}}
pools {{
    people {{
        addrs = 10.94.0.0/24
    }}
}}
"""
DIALLING = f"""\
connections {{
    %(user)s {{
        version = 2
        remote_addrs = {GATEWAY}
        vips = 0.0.0.0
        local {{
            auth = eap-mschapv2
            id = %(user)s
        }}
        remote {{
            auth = pubkey
            id = vpn.example
        }}
        children {{
            %(user)s {{
                remote_ts = {INSIDE}/24
            }}
        }}
    }}
}}
secrets {{
    eap-%(user)s {{
        id = %(user)s
        secret = "%(password)s"
    }}
}}
"""
_PLUGINS = ("eap-radius", "eap-mschapv2", "kernel-libipsec", "openssl")
_missing = [name for name in _PLUGINS if not Path(f"/usr/lib/ipsec/plugins/libstrongswan-{name}.so").exists()]

pytestmark = [
    pytest.mark.peer,
    needs("charon-systemd", "swanctl", "freeradius", "ip", "nsenter", "unshare"),
    pytest.mark.skipif(bool(_missing), reason=f"strongSwan's {', '.join(_missing)} is not installed"),
    pytest.mark.skipif(not may_unshare(), reason="a network of its own is not permitted"),
    pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="there is no /dev/net/tun"),
]


@dataclass(frozen=True)
class Vpn:
    """The gateway and the station, which both run charon, and the service that the gateway asks."""

    gateway: Machine
    station: Machine
    service: RunningService

    def dial(self, user: str) -> str:
        """Connect as one of PEOPLE, and return the output of the station."""
        done = self.station.attempt("swanctl", "--initiate", "--child", user, "--timeout", LIMIT_S)
        return done.stdout + done.stderr

    def hang_up(self, user: str) -> None:
        """End the connection that `dial` has made."""
        self.station.run("swanctl", "--terminate", "--ike", user, "--timeout", LIMIT_S)

    def gateway_log(self) -> str:
        """Return the log of the gateway so far."""
        return output(self.gateway).read_text(errors="replace")


@pytest.fixture(scope="module")
def vpn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vpn]:
    """Yield the running gateway, station and service. The domain is in monitor mode."""
    directories = [tmp_path_factory.mktemp(name) for name in ("gateway", "station", "service", "home")]
    own = {"/etc/swanctl": "swanctl"}
    with (
        Machine(directories[0], own, resolver="127.0.0.1") as gateway,
        Machine(directories[1], own, resolver="127.0.0.1") as station,
        running_service(directories[2], {"SALLYPORT_REJECT_DELAY_S": "0"}, wrapper=gateway.wrapper) as service,
        ExitStack() as beside,
    ):
        with gateway.inside():
            home = beside.enter_context(freeradius_home(directories[3], post_auth=OTHER_KEYS_FOR_EVE))
        service.add_client("gateway", "127.0.0.1", SECRET)
        fields = {"radius": {"servers": [home.fields]}}
        service.run("/ad/SetFirstFactor", {"firstFactor": "radius", **fields}, domain="default")
        connect(gateway, GATEWAY, station, STATION)
        gateway.run("ip", "address", "add", f"{INSIDE}/24", "dev", "lo")
        authority = Authority("authority")
        key, _, certificate = authority.key_for("vpn.example").decode().partition(BEGIN_CERTIFICATE)
        files = {"private/gateway.pem": key, "x509/gateway.pem": BEGIN_CERTIFICATE + certificate}
        start(gateway, service, {**files, "swanctl.conf": DIALLED})
        people = [DIALLING % {"user": user, "password": password} for user, password in PEOPLE.items()]
        start(station, service, {"x509ca/authority.pem": authority.pem, "swanctl.conf": "".join(people)})
        yield Vpn(gateway, station, service)


def start(machine: Machine, service: RunningService, files: dict[str, str]) -> None:
    """Start charon on a machine, and wait until it has read the files in /etc/swanctl."""
    for name, text in files.items():
        file = machine.directory / "swanctl" / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    configuration = machine.directory / "strongswan.conf"
    configuration.write_text(STRONGSWAN % (service.ports.auth, service.ports.acct, SECRET))
    machine.start(output(machine), "env", f"STRONGSWAN_CONF={configuration}", find("charon-systemd"))
    eventually(lambda: machine.attempt("swanctl", "--stats").returncode == 0, output(machine), limit_s=30)
    machine.run("swanctl", "--load-all", "--noprompt")


def output(machine: Machine) -> Path:
    """Return the path of charon's log on the machine."""
    return machine.directory / "output"


def test_the_right_password_opens_a_tunnel(vpn: Vpn) -> None:
    """The Access-Accept gives the gateway the same key that the station has, because IKE would fail otherwise.

    Data passes through the tunnel. The gateway is recognized as strongSwan, and its session is listed until the station
    disconnects.
    """
    dialled = vpn.dial("ann")
    assert ESTABLISHED in dialled
    assert TUNNEL in dialled
    with vpn.station.inside(), pytest.raises(ConnectionRefusedError):
        socket.create_connection((INSIDE, 9), timeout=30)
    assert event(vpn.service, "ann")[1:] == ("accept", "no provider", "radius")
    (device,) = vpn.service.devices()
    assert (device["device_type"], device["device_type_certainty"]) == ("strongSwan", "probable")
    assert (device["nas_identifier"], device["client_ip"]) == ("strongSwan", GATEWAY)
    assert device["nas_port_type"] == "Virtual"
    eventually(lambda: len(sessions(vpn.service, "ann", live=True)) == 1, output(vpn.gateway))
    (session,) = sessions(vpn.service, "ann")
    assert session["station"] == f"{STATION}[4500]"
    assert session["framedIp"].startswith("10.94.0.")
    vpn.hang_up("ann")
    eventually(lambda: sessions(vpn.service, "ann", live=True) == [], output(vpn.gateway))
    (session,) = sessions(vpn.service, "ann")
    assert (session["state"], session["terminateCause"]) == ("stopped", "User-Request")
    assert min(session["inputOctets"], session["outputOctets"]) > 0


def test_a_wrong_password_opens_no_tunnel(vpn: Vpn) -> None:
    """The station receives EAP-Failure, and no accounting is sent for a session."""
    dialled = vpn.dial("bob")
    assert "received EAP_FAILURE" in dialled
    assert ESTABLISHED not in dialled
    assert event(vpn.service, "bob")[1:3] == ("reject", "refused by the upstream server")
    assert sessions(vpn.service, "bob") == []


def test_wrong_keys_open_no_tunnel(vpn: Vpn) -> None:
    """If FreeRADIUS sends other keys, both ends refuse the tunnel.

    This proves that a working tunnel has the right keys.
    """
    dialled = vpn.dial("eve")
    assert event(vpn.service, "eve")[1] == "accept"
    assert ESTABLISHED not in dialled
    assert "received AUTHENTICATION_FAILED" in dialled
    assert "verification of AUTH payload with EAP MSK failed" in vpn.gateway_log()


def test_a_push_is_waited_for(vpn: Vpn) -> None:
    """strongSwan repeats its Access-Request after two seconds. The user is asked once, and logs in with the keys."""
    with vpn.gateway.inside(), Hook() as hook:
        provide(vpn.service, "webhook", **hook.fields)
        vpn.service.set_mode("default", "enforce")
        hook.will("pia", "approved", after_s=3)
        assert TUNNEL in vpn.dial("pia")
        assert hook.prompts_of("pia") == 1
    assert "retransmit" in vpn.gateway_log()
    assert event(vpn.service, "pia") == ("accept", "accept", "", "radius+webhook")
