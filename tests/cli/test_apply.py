"""`sallyport export` and `sallyport apply`."""

import json
from pathlib import Path

from sallyport.shell.exits import ExitStatus
from tests.cli import Service
from tests.waiting import eventually

FOLDER = {
    "domain.toml": '[[domain]]\ndomainName = "branch"\n',
    "client.toml": (
        '[[client]]\nname = "vpn"\naddress = "192.0.2.1"\nsecret = "file:vpn.secret"\ndomains = ["branch"]\n'
    ),
    "role.toml": '[[role]]\ndomain = "branch"\nrole = "staff"\n[[role.sets]]\nvlan = "20"\n',
    "rule.toml": '[[rule]]\ndomain = "branch"\nname = "all"\naction = "mfa_required"\nrole = "staff"\n',
    "vpn.secret": "a secret of the vpn\n",
}


def test_a_folder_is_planned_applied_and_exported(service: Service, tmp_path: Path) -> None:
    """`--diff` says what would change, with exit status 3, and changes nothing. `apply` changes it, once. The export is
    the same configuration."""
    for name, text in FOLDER.items():
        (tmp_path / name).write_text(text)
    scope = ("--org", "1", "--tenant", "1")
    diff = service.program("apply", str(tmp_path), "--diff", *scope)
    assert diff.returncode == ExitStatus.WOULD_CHANGE, diff.stderr
    assert "+ domain branch\n+ client vpn\n+ role branch/staff\n+ rule branch/all\n" in diff.stdout
    assert "\x1b" not in diff.stdout and "a secret" not in diff.stdout + diff.stderr
    service.ok("apply", str(tmp_path), *scope)
    assert service.program("apply", str(tmp_path), "--diff", *scope).returncode == 0
    service.ok("export", str(tmp_path / "out"), "--schema", *scope)
    assert "[[role.sets]]" in (tmp_path / "out/role.toml").read_text()
    assert 'secret = "keep"' in (tmp_path / "out/client.toml").read_text()
    assert json.loads((tmp_path / "out/client.schema.json").read_text())["properties"]["client"]
    assert service.program("apply", str(tmp_path / "out"), "--diff", *scope).returncode == 0
    (tmp_path / "rule.toml").write_text("")
    pruned = service.program("apply", str(tmp_path), "--prune", *scope)
    assert pruned.returncode == 1 and "--prune=all" in pruned.stderr
    service.ok("apply", str(tmp_path), "--prune=all", "--only", "rule", *scope)
    (plan,) = json.loads(service.program("apply", str(tmp_path), "--diff", "--json", *scope).stdout)
    assert plan["steps"] == [] and plan["counts"]["unchanged"] == 3


def test_a_command_changes_objects_of_files_only_with_override(service: Service, tmp_path: Path) -> None:
    """The error names the file, the object and the option. The next `apply` undoes the change."""
    (tmp_path / "domain.toml").write_text('[[domain]]\ndomainName = "shop"\n')
    folder = ("apply", str(tmp_path), "--org", "1", "--tenant", "1")
    service.ok(*folder)
    change = ("domain", "set", "shop", "--remember-hours", "8")
    refused = service.cli(*change)
    assert refused.returncode == 1 and "domain.toml manages the domain shop" in refused.stderr
    assert "`sallyport --override`" in refused.stderr
    service.ok("--override", *change)
    assert "configuration.override" in service.ok("audit", "list", "--domain", "shop")
    assert service.program(*folder, "--diff").returncode == ExitStatus.WOULD_CHANGE
    service.ok(*folder)
    assert service.program(*folder, "--diff").returncode == 0


def test_doctor_names_the_objects_that_differ_from_the_files(tmp_path: Path) -> None:
    """An object that was changed after the folder of the setting `apply` was applied is a warning."""
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "domain.toml").write_text('[[domain]]\ndomainName = "shop"\n')
    service = Service(tmp_path, {"SALLYPORT_APPLY": str(folder)})
    service.start()
    try:
        eventually(lambda: bool(service.call("configuration.state")["at"]))
        assert "differ from the files" not in service.cli("doctor").stdout
        service.ok("--override", "domain", "set", "shop", "--remember-hours", "8")
        assert "objects differ from the files: domain shop;" in service.cli("doctor").stdout
        service.stop()
    finally:
        service.kill()


def test_wrong_folders_and_options_are_refused(service: Service, tmp_path: Path) -> None:
    """An empty folder, an unknown kind, and wrong files are errors with the place."""
    empty = service.program("apply", str(tmp_path), "--org", "1", "--tenant", "1")
    assert empty.returncode == 1 and "no file KIND.toml" in empty.stderr
    assert service.program("apply", str(tmp_path), "--only", "clients").returncode == 2
    (tmp_path / "client.toml").write_text('[[client]]\nname = "vpn"\naddress = "here"\nsecret = "keep"\n')
    wrong = service.program("apply", str(tmp_path), "--org", "1", "--tenant", "1")
    assert wrong.returncode == 1 and "client.toml:1: client vpn: " in wrong.stderr
