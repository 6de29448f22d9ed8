"""eapol_test plays station and access point: it makes an EAP login over RADIUS and checks the keys."""

import subprocess
from pathlib import Path

from tests.peers.programs import find

SUCCESS, KEYS = "\nSUCCESS\n", "MPPE keys OK: 1  mismatch: 0"


def eapol_test(directory: Path, port: int, secret: str, network: str, *options: str) -> str:
    """Log in at 127.0.0.1 and return the output. It ends with SUCCESS if the login was accepted and its keys match.

    network: lines for a wpa_supplicant network, in addition to key_mgmt.
    """
    path = directory / "eapol.conf"
    path.write_text(f"network={{\nkey_mgmt=IEEE8021X\n{network}\n}}\n")
    command = [find("eapol_test"), "-c", str(path), "-a", "127.0.0.1", "-p", str(port), "-s", secret, "-t", "20"]
    done = subprocess.run(
        [*command, *options], capture_output=True, text=True, errors="replace", timeout=60, check=False
    )
    return done.stdout + done.stderr
