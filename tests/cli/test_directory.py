"""`sallyport directory`: imports from files, their results, and field mappings."""

import json
from pathlib import Path

import pytest

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


def test_a_file_is_imported(service: Service, tmp_path: Path) -> None:
    """`import-ldif --wait` prints the counts. If the file has an error, it prints the line of the error, and the exit
    status is 1. `list`, `jobs`, `show` and `mapping` show the directory.
    """
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
    assert (over.returncode, "the import has ended already" in over.stderr) == (1, True)
    service.ok("directory", "mapping", "hq", "slack=nick", *domain, "--apply")
    service.ok("directory", "mapping", "hq", "email=", *domain, "--group", "OPS")
    shown = service.ok("directory", "mapping", "hq", *domain)
    assert "chat" in shown and "nick" in shown
    hq = json.loads(service.ok("directory", "show", "HQ", *domain))
    assert hq["fieldMappings"] == {"chat": "nick"} and {job["kind"] for job in hq["jobs"]} == {"ldif", "mapping"}
    wrong = service.cli("directory", "mapping", "hq", "email=a b", *domain)
    assert wrong.returncode == 1 and "a b" not in wrong.stderr


def test_unknown_names_are_refused(service: Service, tmp_path: Path) -> None:
    """The exit status is 1 for an unknown directory, domain or group. It is also 1 for `sync` of a directory that is
    filled from files.
    """
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


def test_remove_prints_the_number_of_its_job(service: Service, tmp_path: Path) -> None:
    service.ok("domain", "add", "gone", "--org", "1", "--tenant", "1")
    (tmp_path / "x.ldif").write_text(LDIF)
    service.ok("directory", "import-ldif", str(tmp_path / "x.ldif"), "--domain", "gone", "--wait")
    assert service.ok("directory", "remove", "LDIF", "--domain", "gone").strip().isdecimal()


def test_removing_most_of_a_directory_needs_confirmation(service: Service, tmp_path: Path) -> None:
    """An import that would remove most entries fails, and the message names the next step. `confirm` removes the
    entries.
    """
    service.ok("domain", "add", "most", "--org", "1", "--tenant", "1")
    file, domain = tmp_path / "people.ldif", ("--domain", "most")
    file.write_text("".join(f"dn: uid=u{n},dc=x\nobjectClass: person\nuid: u{n}\n\n" for n in range(40)))
    service.ok("directory", "import-ldif", str(file), *domain, "--wait")
    file.write_text(LDIF)
    stopped = service.cli("directory", "import-ldif", str(file), *domain, "--complete", "--wait")
    number = stopped.stdout.strip()
    assert stopped.returncode == 1 and f"confirm import {number}" in stopped.stderr
    confirmed = service.cli("directory", "confirm", number, "--wait")
    assert confirmed.returncode == 0 and "40 removed" in confirmed.stderr
    assert service.cli("directory", "confirm", number).returncode == 1


def test_people_and_groups_are_listed_and_filtered(service: Service, tmp_path: Path) -> None:
    """The list is filtered by search text, directory and group. A note says if there are more entries. No name is
    printed with control characters.
    """
    service.ok("domain", "add", "listed", "--org", "1", "--tenant", "1")
    domain, file = ("--domain", "listed"), tmp_path / "people.ldif"
    file.write_bytes(LDIF.encode() + b"\ndn: uid=red,dc=x\nobjectClass: person\nuid: red\ndisplayName:: G1szMW1yZWQ=\n")
    for name in ("hq", "branch"):
        service.ok("directory", "import-ldif", str(file), *domain, "--directory", name, "--wait")

    def people(*words: str) -> list[tuple[str, str]]:
        found = json.loads(service.ok("directory", "people", *domain, "--json", *words))
        return [(each["directoryName"], each["userName"]) for each in found]

    assert people("--search", "ANN@") == [("hq", "ann"), ("branch", "ann")]
    assert len(people()) == 4 and len(people("--directory", "HQ")) == 2
    assert people("--group", "OPS", "--directory", "branch") == [("branch", "ann")]
    several = service.cli("directory", "people", *domain, "--group", "ops")
    assert several.returncode == 1 and "branch, hq" in several.stderr
    assert service.cli("directory", "people", *domain, "--group", "nobody").returncode == 1
    limited = service.cli("directory", "people", *domain, "--limit", "3")
    assert "more than 3" in limited.stderr and "\x1b" not in limited.stdout
    assert "more than" not in service.cli("directory", "people", *domain, "--limit", "4").stderr
    (first, second) = json.loads(service.ok("directory", "groups", *domain, "--search", "OP", "--json"))
    assert (first["groupName"], first["memberCount"], second["directoryName"]) == ("ops", 1, "branch")
    listed = json.loads(service.ok("directory", "list", "--json"))
    assert {(each["domain"], each["directoryName"]) for each in listed} >= {("listed", "hq"), ("listed", "branch")}


def test_directories_of_agents_and_files_are_added_without_a_check(service: Service) -> None:
    """For a directory that an agent or a file fills, the output names the next command. `check` refuses such a
    directory.
    """
    service.ok("domain", "add", "unread", "--org", "1", "--tenant", "1")
    for kind, following in (("agent", "agent key create --kind directory"), ("ldif", "directory import-ldif FILE")):
        added = service.cli("directory", "add", f"the {kind}", "--domain", "unread", "--kind", kind)
        assert added.returncode == 0 and f"sallyport {following}" in added.stderr and f"'the {kind}'" in added.stderr
        refused = service.cli("directory", "check", f"the {kind}", "--domain", "unread")
        assert (
            refused.returncode == 1
            and "the service reads only directories of the kinds ldap, graph and okta" in refused.stderr
        )
    service.ok("directory", "set", "the ldif", "--domain", "unread", "--account", "x")
    kinds = [each["kind"] for each in json.loads(service.ok("directory", "list", "--domain", "unread", "--json"))]
    assert kinds == ["agent", "ldif"]


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("add", "x"), 2, "--url is missing: give it, or --kind agent, or --kind ldif"),
        (
            ("add", "x", "--url", "ldap://h", "--bind-password", "hunter2"),
            2,
            "--bind-password, --client-secret and --api-token accept only -",
        ),
        (("add", "x", "--url", "ldap://h", "--api-token", "-", "--secret-file", "f"), 2, "give either --secret-file"),
        (("add", "x", "--url", "ldap://h", "--client-secret", "-"), 2, "the secret is empty"),
        (("add", "x", "--url", "ldap://h", "--secret-file", "/nowhere"), 1, "/nowhere: No such file"),
        (("add", "x", "--url", "ldap://h", "--ca-certificate", "/proc/self/mem"), 1, "/proc/self/mem"),
        (
            ("add", "x", "--url", "ldap://h", "--secret-file", "/usr/bin/env"),
            1,
            "/usr/bin/env: the secret is not UTF-8 text",
        ),
        (("add", "x" * 300, "--kind", "agent"), 1, "NAME: "),
        (("add", "x\x1b[31m", "--kind", "agent"), 1, "NAME: "),
        (("add", "x", "--kind", "tape"), 2, "tape"),
        (("add", "x", "--url", "https://acme.okta.com"), 1, "nothing is saved: the directory needs an --api-token"),
        (
            ("add", "x", "--url", "https://graph.microsoft.com"),
            1,
            "needs --entra-tenant, --client-id and --client-secret",
        ),
        (("add", "x", "--url", "ldaps://h"), 1, "--base-dn"),
        (("add", "x", "--url", "ldaps://h", "--base-dn", "nonsense"), 1, "base"),
        (("set", "x"), 2, "nothing to change"),
        (("set", "x", "--base-dn", "dc=x"), 1, 'directory "x" not found'),
        (("check", "x"), 1, 'directory "x" not found'),
    ],
)
def test_invalid_options_are_refused(service: Service, words: tuple[str, ...], status: int, message: str) -> None:
    """The message names the option or the reason but no secret. Nothing is saved."""
    refused = service.cli("directory", *words, "--domain", "default")
    assert (refused.returncode, refused.stdout) == (status, "") and message in refused.stderr, refused.stderr
    assert "hunter2" not in refused.stderr and "\x1b" not in refused.stderr and "Traceback" not in refused.stderr
    listed = json.loads(service.ok("directory", "list", "--domain", "default", "--json"))
    assert {each["directoryName"] for each in listed} <= {"LDIF"}
