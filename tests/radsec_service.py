"""A running service with RadSec.

The user ann has the password hello, and the RADIUS client `proxy` has a certificate.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.ports import free_port
from tests.running_service import RunningService

PROXY = "proxy.example.org"


class SecureService(RunningService):
    """A service with a RadSec port on 127.0.0.1. The port stays the same when the service is started again."""

    def __init__(self, directory: Path) -> None:
        self.radsec_port = free_port()
        bind = f"127.0.0.1:{self.radsec_port}"
        super().__init__(directory, {"SALLYPORT_RADSEC_BIND": bind, "SALLYPORT_REJECT_DELAY_S": "0"})


@contextmanager
def running_secure_service(directory: Path, made: Path) -> Iterator[SecureService]:
    """Run a service with the certificates of another data directory until the block ends."""
    service = SecureService(directory)
    service.data_dir.mkdir(mode=0o700)
    shutil.copytree(made / "certs", service.data_dir / "certs")
    try:
        service.start()
        service.add_client("proxy", "192.0.2.200", tlsName=PROXY)
        service.add_user("ann", b"hello")
        yield service
        service.stop()
    finally:
        service.kill()
