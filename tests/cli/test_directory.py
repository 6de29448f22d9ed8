"""`sallyport directory`: imports from files, what became of them, and mappings."""

import json
from pathlib import Path

from tests.cli import Service

LDIF = """dn: uid=ann,ou=People,dc=x
objectClass: inetOrgPerson
uid: ann
mail: ann@example.org
nick: annie

dn: cn=ops,dc=x
objectClass: groupOfNames
cn: ops
member: uid=ann,ou=People,dc=x
"""


def test_a_file(service: Service, tmp_path: Path) -> None:
    """A file is imported and waited for; an error in it is shown with its line, and exit status 1; the list, the
    imports and the mapping are shown."""
    service.ok("domain", "add", "people", "--org", "1", "--tenant", "1")
    domain = ("--domain", "people")
    file = tmp_path / "people.ldif"
    file.write_text(LDIF)
    done = service.cli("directory", "import-ldif", str(file), *domain, "--directory", "hq", "--wait")
    assert done.returncode == 0 and done.stdout.strip().isdecimal(), done.stderr
    assert "2 total, 2 added, 0 updated" in done.stderr
    file.write_text(LDIF + "\nno colon\n")
    failed = service.cli("directory", "import-ldif", str(file), *domain, "--wait")
    assert failed.returncode == 1 and "FAILED" in failed.stderr and "line 12: " in failed.stderr
    (hq, ldif) = json.loads(service.ok("directory", "list", *domain, "--json"))
    assert (hq["directoryName"], hq["kind"], ldif["directoryName"]) == ("hq", "ldif", "LDIF")
    jobs = json.loads(service.ok("directory", "jobs", *domain, "--json"))
    assert [job["state"] for job in jobs] == ["FAILED", "DONE"]
    over = service.cli("directory", "cancel", str(jobs[0]["jobId"]))
    assert (over.returncode, "over" in over.stderr) == (1, True)
    service.ok("directory", "mapping", "hq", "slack=nick", *domain, "--apply")
    service.ok("directory", "mapping", "hq", "email=", *domain, "--group", "OPS")
    shown = service.ok("directory", "mapping", "hq", *domain)
    assert "chat" in shown and "nick" in shown
    hq = json.loads(service.ok("directory", "show", "HQ", *domain))
    assert hq["fieldMappings"] == {"chat": "nick"} and {job["kind"] for job in hq["jobs"]} == {"ldif", "mapping"}
    wrong = service.cli("directory", "mapping", "hq", "email=a b", *domain)
    assert wrong.returncode == 1 and "a b" not in wrong.stderr


def test_what_is_refused(service: Service, tmp_path: Path) -> None:
    """Unknown directories, domains and groups are refused, and directories that the service does not read."""
    domain = ("--domain", "default")
    (tmp_path / "x.ldif").write_text(LDIF)
    service.ok("directory", "import-ldif", str(tmp_path / "x.ldif"), *domain, "--wait")
    for command in (
        ("sync", "nobody", *domain), ("sync", "LDIF", *domain), ("list", "--domain", "nowhere"),
        ("show", "nobody", *domain), ("remove", "nobody", *domain),
        ("mapping", "LDIF", "email=mail", *domain, "--group", "nobody"), ("cancel", "999999"),
    ):  # fmt: skip
        assert service.cli("directory", *command).returncode == 1, command
    assert service.cli("directory", "mapping", "LDIF", "email", *domain).returncode == 2


def test_a_directory_is_removed(service: Service, tmp_path: Path) -> None:
    """`remove` prints the number of a job, as an import does."""
    service.ok("domain", "add", "gone", "--org", "1", "--tenant", "1")
    (tmp_path / "x.ldif").write_text(LDIF)
    service.ok("directory", "import-ldif", str(tmp_path / "x.ldif"), "--domain", "gone", "--wait")
    assert service.ok("directory", "remove", "LDIF", "--domain", "gone").strip().isdecimal()


def test_most_of_a_directory_is_not_removed(service: Service, tmp_path: Path) -> None:
    """An import that would remove most of a directory fails and names the next step; `confirm` removes."""
    service.ok("domain", "add", "most", "--org", "1", "--tenant", "1")
    file, domain = tmp_path / "people.ldif", ("--domain", "most")
    file.write_text("".join(f"dn: uid=u{n},dc=x\nobjectClass: person\nuid: u{n}\n\n" for n in range(40)))
    service.ok("directory", "import-ldif", str(file), *domain, "--wait")
    file.write_text(LDIF)
    stopped = service.cli("directory", "import-ldif", str(file), *domain, "--complete", "--wait")
    number = stopped.stdout.strip()
    assert stopped.returncode == 1 and f"confirm import {number}" in stopped.stderr
    told = service.cli("directory", "confirm", number, "--wait")
    assert told.returncode == 0 and "40 removed" in told.stderr
    assert service.cli("directory", "confirm", number).returncode == 1
