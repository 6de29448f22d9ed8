"""Tests of strongSwan's own dynamic authorization: a VPN user is disconnected.

The gateway sends logins and accounting to the service. The service passes EAP on to hostapd, and asks the gateway to
end the session. The user's machine is at the other end of a cable.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.freeradius import eventually
from tests.peers.namespace import Machine, connect, may_unshare
from tests.peers.programs import find, needs
from tests.peers.test_dynamic_hostapd import DYNAMIC, PASSWORD, SECRET, behind, live
from tests.running_service import RunningService

EAP_RADIUS = Path("/usr/lib/ipsec/plugins/libstrongswan-eap-radius.so")
GATEWAY, LAPTOP = "10.97.8.1", "10.97.8.2"
CHARON = """\
charon-systemd {{
    load = random nonce openssl kdf hmac sha1 sha2 md5 aes gmp kernel-netlink socket-default vici eap-identity \
eap-md5 eap-radius
    filelog {{
        stderr {{
            default = 1
        }}
    }}
    plugins {{
        eap-radius {{
            accounting = yes
            dae {{
                enable = yes
                listen = 127.0.0.1
                port = {dynamic}
                secret = {secret}
            }}
            servers {{
                service {{
                    address = 127.0.0.1
                    auth_port = {auth}
                    acct_port = {acct}
                    secret = {secret}
                }}
            }}
        }}
    }}
}}
"""
AT_GATEWAY = f"""\
connections {{
    users {{
        version = 2
        local_addrs = {GATEWAY}
        local {{
            auth = psk
            id = gateway
        }}
        remote {{
            auth = eap-radius
            eap_id = %any
        }}
        children {{
            net {{
                local_ts = {GATEWAY}/32
            }}
        }}
    }}
}}
secrets {{
    ike {{
        id = gateway
        secret = "shared between gateway and users"
    }}
}}
"""
AT_LAPTOP = f"""\
connections {{
    office {{
        version = 2
        remote_addrs = {GATEWAY}
        local {{
            auth = eap-md5
            id = ann
            eap_id = ann
        }}
        remote {{
            auth = psk
            id = gateway
        }}
        children {{
            net {{
                remote_ts = {GATEWAY}/32
            }}
        }}
    }}
}}
secrets {{
    ike {{
        id = gateway
        secret = "shared between gateway and users"
    }}
    eap {{
        id = ann
        secret = "{PASSWORD}"
    }}
}}
"""

pytestmark = [
    pytest.mark.peer,
    needs("charon-systemd", "swanctl", "hostapd", "ip"),
    pytest.mark.skipif(not EAP_RADIUS.exists(), reason="strongSwan's plugin eap-radius is not installed"),
    pytest.mark.skipif(not may_unshare(), reason="a network of its own is not permitted"),
]


def charon(machine: Machine, settings: str, connections: str) -> Path:
    """Start strongSwan, wait until it is ready, and return its log."""
    directory, output = machine.directory, machine.directory / "charon"
    (directory / "strongswan.conf").write_text(settings)
    (directory / "swanctl.conf").write_text(connections)
    environment = f"STRONGSWAN_CONF={directory / 'strongswan.conf'}"
    machine.start(output, find("env"), environment, find("charon-systemd"))
    load = (find("swanctl"), "--load-all", "--file", str(directory / "swanctl.conf"))
    eventually(lambda: machine.attempt(*load).returncode == 0, output, limit_s=30)
    return output


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Machine]:
    """Yield the gateway's machine, with a cable to the user's."""
    for name in ("gateway", "laptop", "service"):
        (tmp_path / name).mkdir()
    with Machine(tmp_path / "gateway", {}, resolver="127.0.0.1") as gateway:
        yield gateway


@pytest.fixture
def service(gateway: Machine, tmp_path: Path) -> Iterator[RunningService]:
    """Yield a service at the gateway."""
    with behind(gateway, tmp_path / "service") as service:
        yield service


def test_a_vpn_user_is_disconnected(gateway: Machine, service: RunningService, tmp_path: Path) -> None:
    """strongSwan acknowledges the request. After that the user's machine has no tunnel."""
    with Machine(tmp_path / "laptop", {}, resolver="127.0.0.1") as laptop:
        connect(gateway, GATEWAY, laptop, LAPTOP)
        settings = CHARON.format(dynamic=DYNAMIC, secret=SECRET, auth=service.ports.auth, acct=service.ports.acct)
        output = charon(gateway, settings, AT_GATEWAY)
        charon(laptop, settings, AT_LAPTOP)
        # A kernel without ESP has no CHILD_SA, and the IKE_SA is up all the same.
        laptop.attempt(find("swanctl"), "--initiate", "--child", "net", "--timeout", "30")
        eventually(lambda: len(live(service)) == 1, output, limit_s=30)
        (session,) = live(service)
        assert session["userName"] == "ann"
        (result,) = service.disconnect(session["sessionId"])
        assert (result["outcome"], result["errorCause"]) == ("ack", None), output.read_text(errors="replace")[-3000:]
        eventually(lambda: not live(service), output, limit_s=30)
        eventually(lambda: "office" not in laptop.run(find("swanctl"), "--list-sas"), output, limit_s=30)
