"""Tests of the command line in interactive use and in scripts, with and without a running service.

Starting a process for each command takes a quarter of a second. So most tests run the command in the process of the
test, from its arguments to its exit status (`cli`). A test that depends on the process runs the installed program
(`program`). Objects that a test needs but does not examine are created over the socket (`call`).
"""

import subprocess
from contextlib import chdir
from typing import Any

from click.testing import CliRunner

from sallyport.cli.main import root, run
from tests.running_service import RunningService


class Service(RunningService):
    """A running service. Its commands run in the process of the test."""

    def cli(self, *args: str, input: str | bytes = b"") -> "subprocess.CompletedProcess[str]":
        with chdir(self.directory), CliRunner().isolation(input=input, env=self.environ) as outputs:
            status = run(lambda: root(args, prog_name="sallyport", standalone_mode=False))
            out, err = outputs[0].getvalue(), outputs[1].getvalue()
        return subprocess.CompletedProcess(args, status, out.decode(), err.decode())


TENANT = ("--org", "1", "--tenant", "1")
OTHER_TENANT = ("--org", "9", "--tenant", "4")
SECRET = "n0t-the-default-secret"


def add_domain(service: RunningService, name: str, **more: Any) -> str:
    """Add a domain to the first tenant and return its ID."""
    return str(service.add_domain(name, **more))


def add_user(service: RunningService, domain: str, name: str, password: str | bytes = b"hello") -> None:
    """Add a user to a domain."""
    service.add_user(name, password, domain)


def add_client(service: RunningService, name: str, address: str, *domains: str, **more: object) -> None:
    """Add a RADIUS client to the first tenant. If no secret is given, its secret is SECRET."""
    scope = {"org": more.pop("org", 1), "tenant": more.pop("tenant", 1)}
    service.call("tenant.add", **scope)
    service.add_client(name, address, more.pop("secret", SECRET), *domains, **scope, **more)
