"""The commands of the documentation work as printed. Every `console` block of a page is run by a walk below or by
another test (TESTED_BY). Otherwise NOT_RUN has the reason why it is not run. tests/docs/commands.py describes how a
page is run.
"""

import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.areas.mfa.duo_server import IKEY, SKEY
from tests.docs.commands import ROOT, Command, Walk, blocks, differs, problem, walked

STOP = "kill %1; wait %1"
"""Stops the service, which the page or `before` has started as the first job."""
HERE = "sallyport client add here --address 127.0.0.1 --org 1 --tenant 1 > here.secret"
ALICE = (
    "echo 'correct horse battery' > alice.password; "
    "sallyport user add alice --domain default --password - < alice.password"
)

MAKE_CA = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
ADD_INTUNE = "sallyport authority add Intune --domain default --file ca.pem"
READY = "until (: < /dev/tcp/127.0.0.1/8099) 2>/dev/null; do sleep 0.05; done"
"""Waits for the server that `before` has started at the free port."""
HOOK = "python3 webhook_example.py 8099 hook.secret --approve"
SET_HOOK = "sallyport provider set default webhook --url"
SERVE_DUO = f"PYTHONPATH={ROOT} {sys.executable} -m tests.areas.mfa.duo_server 8099 alice"
DUO = [f"{SERVE_DUO} & {READY}", f"echo {SKEY} > duo.key"]
AT_DUO = {"8099": "{free}", "DIXXXXXXXXXXXXXXXXXX": IKEY, "api-xxxxxxxx.duosecurity.com": "127.0.0.1:{free}"}

CONNECT = sorted(
    page.stem for page in (ROOT / "docs" / "connect").glob("*.md") if page.stem not in {"index", "fortigate"}
)
WALKS = [
    Walk("README.md", serves=True, replace={"~/sallyport": "sallyport-home"}, skip=["make demo"]),
    Walk(
        "docs/getting-started.md",
        serves=True,
        replace={"~/sallyport": "sallyport-home", "sallyport admin add root": "sallyport admin add root --password -"},
        typed={"sallyport admin add": "a horse and 42 batteries"},
        skip=["make demo"],
    ),
    Walk(
        "docs/console/sign-in.md",
        replace={"sallyport admin add root": "sallyport admin add root --password -"},
        typed={"sallyport admin add": "a horse and 42 batteries"},
    ),
    Walk(
        "docs/guides/eap.md",
        before=[
            "for name in intune adcs; do openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
            "-keyout $name.key -out $name.pem -subj /CN=$name 2>/dev/null; done",
            "sallyport domain add corp --org 1 --tenant 1 --realm eu.corp.example",
            "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 90 -keyout server.key "
            "-out chain.pem -subj /CN=radius.corp.example -addext subjectAltName=DNS:radius.corp.example "
            "-addext extendedKeyUsage=serverAuth -addext keyUsage=digitalSignature 2>/dev/null",
            "cp server.key eu.key && cp chain.pem eu.pem && cp chain.pem new.pem",
        ],
    ),
    Walk("docs/guides/profiles.md", before=["sallyport cert init --host radius.example.org"]),
    Walk("docs/guides/gitops.md", files=[f"gitops/{kind}.toml" for kind in ("domain", "client", "rule")]),
    Walk("docs/guides/agents.md", skip=["make deb-agent", "sudo python3", "sudo sallyport-agent"]),
    Walk(
        "docs/guides/mac-bypass.md",
        before=[
            "sallyport client add switch --address 192.0.2.77 --org 1 --tenant 1",
            "echo 'a word' > word.txt",
            "echo 'correct horse' > key.txt",
            "echo 'Registry,Assignment,Organization Name' | tee oui.csv mam.csv oui36.csv",
        ],
    ),
    Walk(
        "docs/guides/enforcement.md",
        before=[HERE, ALICE, "sallyport provider set default totp"],
        replace={"check default --user alice": "check default --user alice --password -", "PILOT REST": "1 2"},
        typed={"sallyport domain check": "correct horse battery"},
    ),
    Walk("docs/guides/password-policies.md", fails=["echo 'correcthorse'"]),
    Walk(
        "docs/guides/radsec.md",
        serves=True,
        before=["sallyport serve &"],
        replace={
            "sudo systemctl restart sallyport": f"{STOP}; SALLYPORT_RADSEC_BIND=127.0.0.1:{{free}} sallyport serve &",
            "radius.example.org:2083": "127.0.0.1:{free}",
            " proxy.example.org.": " sallyport-data/certs/clients/proxy.example.org.",
        },
    ),
    Walk(
        "docs/guides/own-domain.md",
        replace={"check acme --user alice": "check acme --user alice --password -"},
        typed={"sallyport domain check": "correct horse battery"},
    ),
    Walk("docs/operate/monitoring.md", skip=["sudo install"]),
    Walk("docs/guides/rules.md", before=[ALICE]),
    Walk("docs/guides/roles.md", before=[ALICE, HERE]),
    Walk(
        "docs/guides/inventory.md",
        before=[
            f'{HERE} && sallyport check radius 127.0.0.1:1812 --secret "$(cat here.secret)" '
            "--user ann --password x --nas-identifier core-7 || true"
        ],
    ),
    Walk(
        "docs/guides/okta-only.md",
        before=[
            "echo token > okta.token",
            "sallyport cert init --host radius.corp.example",
            "sallyport cert show --ca > mdm-ca.pem",
        ],
        replace={"--secret-file okta.token": "--secret-file okta.token --no-check"},
        skip=["sallyport directory sync"],
    ),
    Walk(
        "docs/guides/revocation.md",
        before=[f"{MAKE_CA} -keyout ca.key -out ca.pem -subj /CN=intune 2>/dev/null", ADD_INTUNE],
    ),
    Walk(
        "docs/guides/intune-wifi.md",
        before=[
            "echo secret > entra.secret",
            f"{MAKE_CA} -keyout intune.key -out intune.pem -subj /CN=intune 2>/dev/null",
        ],
        replace={"--secret-file entra.secret": "--secret-file entra.secret --no-check"},
        skip=["sallyport directory sync"],
    ),
    Walk(
        "docs/guides/adcs-wired.md",
        before=[
            f"{MAKE_CA} -keyout adcs.key -out adcs.pem -subj /CN=adcs 2>/dev/null",
            f"{MAKE_CA} -days 90 -keyout radius.key -out radius.pem -subj /CN=radius.corp.example "
            "-addext subjectAltName=DNS:radius.corp.example "
            "-addext extendedKeyUsage=serverAuth -addext keyUsage=digitalSignature 2>/dev/null",
        ],
        skip=["sallyport domain first-factor"],
    ),
    Walk("docs/guides/siem.md"),
    Walk("docs/guides/from-nps.md", before=[ALICE], files=["nps_example.xml"]),
    Walk("docs/guides/from-ise.md", files=["ise_example.csv"]),
    Walk(
        "docs/guides/from-freeradius.md",
        before=[
            "mkdir -p raddb/mods-config/files",
            "printf 'client core { ipaddr = 192.0.2.1\\n secret = a-long-secret }\\n' > raddb/clients.conf",
            'printf \'alice Cleartext-Password := "correct horse"\\n Filter-Id = "staff"\\n\' '
            "> raddb/mods-config/files/authorize",
        ],
    ),
    Walk("docs/guides/wallets.md"),
    Walk(
        "docs/guides/second-factors.md",
        before=[HERE, ALICE, *DUO],
        replace=AT_DUO,
        fails=["sallyport provider check default --provider webhook"],  # hook.example does not exist
        skip=[
            "sallyport user totp",
            "sallyport device reset",
            "sallyport provider set default own",
            "sallyport user enrol alice",
        ],
    ),
    Walk(
        "docs/guides/lost-phone.md",
        before=[ALICE],
        fails=["sallyport user passkey remove", "sallyport user remembered remove", "sallyport user enrol"],
        skip=["sallyport user totp alice --domain"],
    ),
    Walk(
        "docs/guides/duo-to-passkeys.md",
        before=[
            ALICE,
            *DUO,
            "sallyport provider set default duo --ikey DIXXXXXXXXXXXXXXXXXX --host "
            "api-xxxxxxxx.duosecurity.com --secret duo.key",
        ],
        settings={"SALLYPORT_PEOPLE_BIND": "127.0.0.2:{free}", "SALLYPORT_PUBLIC_URL": "https://login.example.org"},
        replace=AT_DUO,
        fails=["sallyport user enrol --group"],  # the walk has no mail server
    ),
    Walk(
        "docs/guides/fortigate-passkeys.md",
        before=[ALICE],
        settings={"SALLYPORT_PEOPLE_BIND": "127.0.0.2:{free}", "SALLYPORT_PUBLIC_URL": "https://login.example.org"},
        replace={" --page-by-mail": ""},  # the walk has no mail server
    ),
    Walk(
        "docs/guides/mfa-provider.md",
        before=[HERE, ALICE],
        replace={
            "openssl rand": "kill %1 2>/dev/null; wait; openssl rand",
            "sallyport provider set default webhook --url https": f"{HOOK} & {READY}; {SET_HOOK} http",
            "hook.example/": "127.0.0.1:8099/",
            "8099": "{free}",
            "8098": "{free}",
        },
        files=["webhook_example.py", "sms_hook_example.py"],
        skip=["sudo /opt/sallyport", "tests/setup"],
    ),
    Walk(
        "docs/install/backup.md",
        before=["mkdir -p /var/backups/sallyport", "sallyport db backup /var/backups/sallyport --keep 14"],
        replace={"/var/backups": "backups", "/var/lib/sallyport/backups": "backups/sallyport"},
        typed={"sallyport db restore": "y"},
        skip=["sudo systemctl", "sudo apt-get", "sudo install", "docker compose"],
    ),
    Walk("docs/operate/capacity.md", replace={"sallyport bench": "sallyport bench --seconds 1 --yes"}),
    *(Walk(f"docs/operate/{name}.md") for name in ("data", "lockouts", "running", "sessions")),
    Walk(
        "docs/install/upgrade.md", typed={"sallyport db restore": "y\nn"}, skip=["git pull", "sudo systemctl restart"]
    ),
    Walk(
        "docs/operate/troubleshooting.md",
        needs="radclient",
        before=[HERE, ALICE],
        replace={"check default --user alice": "check default --user alice --password -"},
        typed={"sallyport domain check": "correct horse battery"},
    ),
    Walk("docs/api/index.md", skip=["openapi-python-client", "npx openapi-typescript"]),
    Walk("docs/api/credentials.md"),
    Walk("docs/connect/fortigate.md", before=DUO, replace=AT_DUO),
    *(Walk(f"docs/connect/{name}.md") for name in CONNECT),
]
TESTED_BY = {
    "docs/guides/company.md": "tests/docs/test_company_guide.py",
    "docs/guides/directories.md": "tests/docs/test_directory_guides.py",
    "docs/guides/first-factors.md": "tests/docs/test_directory_guides.py",
    "docs/guides/entra-second-factor.md": "tests/service/test_people.py",
    "docs/guides/shadow.md": "tests/docs/test_shadow_guide.py",
    "docs/operate/mail.md": "tests/cli/test_check.py",
}
"""The tests of pages that need a real server or device. The file of the test names the page."""
NOT_RUN = {
    "README.md": {"make demo": "tests/cli/test_demo.py runs the demo"},
    "docs/getting-started.md": {"make demo": "tests/cli/test_demo.py runs the demo"},
    "docs/guides/agents.md": {
        "make deb-agent": "it changes the machine; tests/deploy/test_agent_package.py installs the package",
        "sudo python3": "it changes the machine; tests/deploy/test_agent_wheel.py runs the wheel",
        "sudo sallyport-agent": "it changes the host of an agent; tests/peers installs agents on a Debian of its own",
    },
    "docs/guides/okta-only.md": {
        "sallyport directory sync": "it needs Okta; tests/peers/test_eapol_cloud.py reads a simulated one"
    },
    "docs/guides/intune-wifi.md": {
        "sallyport directory sync": "it needs Entra ID; tests/peers/test_eapol_cloud.py reads a simulated one"
    },
    "docs/guides/adcs-wired.md": {
        "sallyport domain first-factor": "it needs a domain controller; tests/peers/test_samba_certificates.py has one",
    },
    "docs/guides/second-factors.md": {
        "sallyport user totp": "it asks for the code of an app; tests/areas/users/test_cli.py enrols a user",
        "sallyport device reset": "the walk has no device; tests/cli/test_device.py resets one",
        "sallyport user enrol alice": "the walk has no pages of people; docs/guides/duo-to-passkeys.md makes a link",
        "sallyport provider set default own": "the walk has no pages of people; tests/areas/mfa/test_own.py has them",
    },
    "docs/guides/lost-phone.md": {
        "sallyport user totp alice --domain": "it asks for a code; tests/areas/users/test_cli.py enrols a user",
    },
    "docs/guides/mfa-provider.md": {
        "sudo /opt/sallyport": "it changes the machine; tests/docs/test_provider_guide.py reads the package's file",
        "tests/setup": "it changes the machine; tests/docs/test_acme_provider.py is the test",
    },
    "docs/guides/winbind.md": {
        "sudo apt-get install winbind": "it changes the machine; tests/peers/test_samba.py joins a Samba",
        "sallyport domain first-factor": "it needs a domain controller; tests/peers/test_samba.py has one",
    },
    "docs/install/backup.md": {
        "sudo systemctl": "it needs two machines",
        "sudo apt-get": "it changes the machine; tests/deploy installs the service in a Debian of its own",
        "sudo install": "tests/deploy/test_debian.py runs it in a Debian of its own",
        "docker compose": "it needs Docker; tests/deploy/test_image.py builds the image",
    },
    "docs/install/cluster.md": {
        "openssl rand": "tests/nodes/cluster.py gives its nodes a key",
        "sudo install": "it changes the machine; tests/nodes/test_cluster.py runs two nodes",
        "sudo systemctl": "it changes the machine; tests/nodes/test_commands.py lists nodes",
    },
    "docs/install/container.md": {"docker compose": "it needs Docker; tests/deploy/test_image.py builds the image"},
    "docs/install/debian.md": {"sudo apt-get install": "tests/deploy/test_package.py installs it"},
    "docs/install/postgresql.md": {
        "createuser": "tests/peers/postgres.py makes a server of its own",
        ".venv/bin/pip install": "tests/setup installs the extra",
        "sallyport db copy": "tests/cli/test_db.py moves an installation",
        "sallyport db backup all.dump": "it needs PostgreSQL; tests/nodes/test_elsewhere.py restores such a file",
        "export SALLYPORT_DATABASE": "tests/nodes/test_elsewhere.py runs commands on a machine without a node",
    },
    "docs/install/upgrade.md": {
        "git pull": "tests/deploy/test_wheel.py and tests/deploy/test_package.py upgrade an installation",
        "sudo systemctl restart": "tests/deploy/test_debian.py runs the unit in a Debian of its own",
    },
    "docs/install/kubernetes.md": {
        "kubectl": "it needs a cluster; tests/deploy/test_kubernetes.py checks the manifest"
    },
    "docs/install/ansible.md": {"ansible-playbook": "it needs hosts; tests/deploy/test_package.py runs the playbook"},
    "docs/api/index.md": {
        "openapi-python-client": "tests/peers/test_api_clients.py generates the client",
        "npx openapi-typescript": "tests/peers/test_api_clients.py generates the types",
    },
    "docs/operate/monitoring.md": {
        "sudo install": "it changes the machine; tests/docs/test_grafana_guide.py checks its files and places",
    },
    "docs/console/identity-provider.md": {"sudo install": "it writes to /etc; the secret is that of a provider"},
    "docs/install/systemd.md": {
        "make dist": "it changes the machine; tests/deploy installs the service in a Debian of its own",
        "sudo /opt/sallyport": "it changes the machine; tests/deploy installs the service in a Debian of its own",
        "sudo ln": "it changes the machine",
        "sudo systemctl stop": "it changes the machine; tests/deploy/test_debian.py runs it in a Debian of its own",
        "sallyport completion": "it changes the machine; tests/cli/test_completion.py runs the scripts",
        "sudo install": "it changes the machine; tests/deploy/test_debian.py runs it in a Debian of its own",
    },
}
"""The first words of blocks that no walk runs, by page, with the reason."""


@pytest.mark.parametrize(
    "walk", [pytest.param(each, marks=pytest.mark.peer if each.needs else (), id=each.page) for each in WALKS]
)
def test_the_commands_of_a_page_work(walk: Walk, tmp_path: Path, program: Path) -> None:
    """Each command ends with the expected status and prints the output that the page shows."""
    if walk.needs and shutil.which(walk.needs) is None:
        pytest.skip(f"{walk.needs} is not installed")
    with walked(walk, tmp_path, program) as done:
        assert problem(walk, done) == ""


def test_every_command_is_run_or_has_a_reason() -> None:
    """A page with commands has exactly one walk or another test. Blocks that are not run are listed, and no list has an
    outdated entry.
    """
    pages = ["README.md", *(page.relative_to(ROOT).as_posix() for page in (ROOT / "docs").rglob("*.md"))]
    walks = {walk.page: walk for walk in WALKS}
    for page in pages:
        shown = [block[0].text for block in blocks(page)]
        without = tuple(NOT_RUN.get(page, {}))
        assert all(any(text.startswith(start) for text in shown) for start in without), page
        left = [text for text in shown if not text.startswith(without)]
        if page in TESTED_BY:
            assert page in (ROOT / TESTED_BY[page]).read_text(encoding="utf-8")
        elif page in walks:
            assert left and set(walks[page].skip) == set(without), page
        else:
            assert not left, f"{page}: no test runs {left[0]}"
    assert walks.keys() | TESTED_BY.keys() | NOT_RUN.keys() <= set(pages)


def test_commands_are_in_console_blocks_only() -> None:
    """Commands are only in `console` blocks, because a command in another kind of block would not be tested."""
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        if "reference" in page.parts:  # generated
            continue
        text = page.read_text(encoding="utf-8")
        assert not [kind for kind in ("bash", "sh", "shell", "shell-session") if f"```{kind}\n" in text], page
        assert not re.search(r"^ *(sudo|docker|make|sallyport) [a-z]", text, re.MULTILINE), page


def test_shown_output_is_a_pattern() -> None:
    """In the shown output, three dots match any text and a number matches any number. Other lines may be printed
    between the shown ones.
    """
    assert differs(("added client ...", "12 devices"), "a log line\nadded client vpn\nnot shown\n3 devices\n") == ""
    assert differs(("12 devices", "added client ..."), "added client vpn\n3 devices\n") == "added client ..."


def test_a_failing_command_is_reported(tmp_path: Path) -> None:
    """The walk stops at the first command that fails, and the report names this command."""
    page = tmp_path / "page.md"
    page.write_text("```console\n$ true\n$ sallyport device\n$ true\n```\n")
    with walked(Walk(str(page), serves=True), tmp_path) as done:
        assert problem(Walk(str(page)), done).startswith("sallyport device\nexit status 2")
        assert done.commands[1] == Command("sallyport device")
