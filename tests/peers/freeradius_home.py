"""FreeRADIUS as the home server: passwords, MS-CHAP, and EAP with certificates.

It runs in debug mode with all files in the test's directory. Release 3.2.1 signs answers if it is configured to.
"""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.areas.mfa.certificates import self_signed
from tests.peers.freeradius import eventually
from tests.peers.programs import find
from tests.ports import free_port

SECRET = "between-service-and-home"
PASSWORD = "pass wörd 上海"

RADIUSD = """\
prefix = {directory}
logdir = {directory}
run_dir = {directory}
libdir = /usr/lib/freeradius
pidfile = {directory}/pid
max_request_time = 30
log {{
    destination = stdout
}}
security {{
    reject_delay = 0
    status_server = yes
    allow_vulnerable_openssl = yes    # the check of the library's version
}}
client service {{
    ipaddr = 127.0.0.1
    secret = {secret}
}}
modules {{
    pap {{
    }}
    chap {{
    }}
    mschap {{
        require_encryption = yes
    }}
    eap {{
        default_eap_type = peap
        tls-config common {{
            private_key_file = {directory}/home.key
            certificate_file = {directory}/home.pem
            ca_file = {directory}/home.pem
            cipher_list = "DEFAULT"
            tls_min_version = "1.2"
            tls_max_version = "1.2"
        }}
        md5 {{
        }}
        mschapv2 {{
        }}
        tls {{
            tls = common
        }}
        ttls {{
            tls = common
            default_eap_type = mschapv2
            virtual_server = inner
        }}
        peap {{
            tls = common
            default_eap_type = mschapv2
            virtual_server = inner
        }}
    }}
}}
server outer {{
    listen {{
        type = auth
        ipaddr = 127.0.0.1
        port = {port}
    }}
    authorize {{
        update control {{
            &Cleartext-Password := "{password}"
        }}
        chap
        mschap
        eap {{
            ok = return
        }}
        pap
    }}
    authenticate {{
        Auth-Type CHAP {{
            chap
        }}
        Auth-Type MS-CHAP {{
            mschap
        }}
        pap
        eap
    }}
    post-auth {{
        update reply {{
            &Class := 0x00ff636c617373
            &Tunnel-Type:0 := VLAN
            &Tunnel-Private-Group-Id:0 := "20"
            {signature}
        }}
        {post_auth}
        Post-Auth-Type REJECT {{
            update reply {{
                &Reply-Message := "not today"
                {signature}
            }}
        }}
    }}
}}
server inner {{
    authorize {{
        update control {{
            &Cleartext-Password := "{password}"
        }}
        mschap
        eap {{
            ok = return
        }}
        pap
    }}
    authenticate {{
        Auth-Type MS-CHAP {{
            mschap
        }}
        pap
        eap
    }}
    post-auth {{
        {inner_post_auth}
    }}
}}
"""


class Home:
    """A running FreeRADIUS.

    certificate: a self-signed certificate. FreeRADIUS uses it as its own for EAP-TLS and as the CA of its clients. key:
    the file of its key.
    """

    def __init__(self, directory: Path, port: int) -> None:
        self._directory = directory
        self._output = directory / "output"
        self._process: subprocess.Popen[bytes] | None = None
        self.port = port
        self.certificate = directory / "home.pem"
        self.key = directory / "home.key"

    @property
    def fields(self) -> dict[str, object]:
        """Return the fields of this server, as SetFirstFactor accepts them."""
        return {"host": "127.0.0.1", "port": self.port, "secret": SECRET}

    def output(self) -> str:
        """Return the output since the last start."""
        return self._output.read_text(errors="replace")

    def start(self) -> None:
        """Start the server, and wait until it is ready."""
        command = [find("freeradius"), "-X", "-d", str(self._directory)]
        with self._output.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        eventually(lambda: "Ready to process requests" in self.output(), self._output)

    def stop(self) -> None:
        """Kill the server if it is running."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


KEEP_INNER_USER = "update outer.session-state { &User-Name := &User-Name }"
NAME_INNER_USER = "update reply { &User-Name := &session-state:User-Name }"


@contextmanager
def freeradius_home(
    directory: Path, *, signs: bool = True, names_inner_user: bool = True, post_auth: str = ""
) -> Iterator[Home]:
    """Yield a FreeRADIUS that accepts any user with PASSWORD.

    names_inner_user: whether its Accept names the user inside EAP, with the configuration of the guide. post_auth:
    further configuration for the Accept.
    """
    port = free_port()
    self_signed(directory, "home")
    (directory / "dictionary").write_text("")
    signature = "&Message-Authenticator := 0x00" if signs else ""
    (directory / "radiusd.conf").write_text(
        RADIUSD.format(
            directory=directory,
            port=port,
            secret=SECRET,
            password=PASSWORD,
            signature=signature,
            post_auth=post_auth + (NAME_INNER_USER if names_inner_user else ""),
            inner_post_auth=KEEP_INNER_USER if names_inner_user else "",
        )
    )
    home = Home(directory, port)
    try:
        home.start()
        yield home
    finally:
        home.stop()
