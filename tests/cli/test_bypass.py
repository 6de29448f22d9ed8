"""`sallyport bypass`: add, list and remove."""

import json
from pathlib import Path

from tests.cli import Service, add_domain


def test_stations_are_added_listed_and_removed(service: Service) -> None:
    """Stations are given as arguments or in a file, in any notation. A line of the file may give the station a name."""
    domain = add_domain(service, "bypassed")
    lines = "# the second floor\n\n02-00-00-00-00-02, camera\n0200.0000.0003\n"
    service.ok("bypass", "add", "020000000001", "--domain", domain, "--name", "printer", "--file", "-", input=lines)
    rows = json.loads(service.ok("bypass", "list", "--domain", domain, "--json"))
    assert {(row["station"][-1], row["name"]) for row in rows} == {("1", "printer"), ("2", "camera"), ("3", "printer")}
    service.ok("bypass", "remove", "02:00:00:00:00:02", "--domain", domain)
    assert "camera" not in service.ok("bypass", "list", "--domain", domain)


def test_new_keys_are_printed_once(service: Service, tmp_path: Path) -> None:
    """Standard output has one line for each station, and nothing else, also with a name for each station."""
    domain = add_domain(service, "generated")
    shown = service.ok("bypass", "add", "020000000001", "020000000002", "--domain", domain, "--psk", "generate")
    titles, *lines = shown.splitlines()
    assert titles == "station,psk"
    assert [line.partition(",")[0] for line in lines] == ["02:00:00:00:00:01", "02:00:00:00:00:02"]
    assert len({line.partition(",")[2] for line in lines}) == 2
    file = tmp_path / "stations.csv"
    file.write_text("020000000003,printer\n020000000004,camera\n")
    shown = service.ok("bypass", "add", "--file", str(file), "--domain", domain, "--psk", "generate")
    assert [line.partition(",")[0] for line in shown.splitlines()] == [
        "station", "02:00:00:00:00:03", "02:00:00:00:00:04",
    ]  # fmt: skip


def test_an_export_is_an_import(service: Service, tmp_path: Path) -> None:
    """An exported file imports the same entries into another domain. A name that a spreadsheet would run is guarded in
    the file alone. Values that a file does not have stay."""
    domain, other = add_domain(service, "exported"), add_domain(service, "imported")
    given = ("--name", "=1+1", "--vlan", "31", "--until", "2099-03-01")
    service.ok("bypass", "add", "020000000001", "--domain", domain, *given)
    file = tmp_path / "stations.csv"
    file.write_text(service.ok("bypass", "export", "--domain", domain))
    assert "'=1+1" in file.read_text()
    service.ok("bypass", "import", str(file), "--domain", other)
    file.write_text("station\n02-00-00-00-00-01\n")
    service.ok("bypass", "import", str(file), "--domain", other)
    (row,) = json.loads(service.ok("bypass", "list", "--domain", other, "--json"))
    assert (row["name"], row["vlan"], row["until"]) == ("=1+1", "31", "2099-03-01T00:00:00.000000Z")
    service.ok("bypass", "add", "020000000001", "--domain", other, "--until", "", "--vlan", "")
    (row,) = json.loads(service.ok("bypass", "list", "--domain", other, "--json"))
    assert (row["vlan"], row["until"], row["expired"], row["randomised"]) == ("", "", False, True)


def test_role_tags_and_key(service: Service, tmp_path: Path) -> None:
    """A key comes from a file or from standard input, and no output has it. Tags survive an export and an import, and
    an import may have keys."""
    domain, other = add_domain(service, "keyed"), add_domain(service, "keyed too")
    for each in (domain, other):
        service.ok("role", "set", "things", "--domain", each, "--vlan", "30")
    key, file = tmp_path / "key", tmp_path / "stations.csv"
    key.write_text("correct horse\n")
    tags = ("--tag", "site=Berlin, Mitte", "--tag", "owner=it")
    service.ok("bypass", "add", "020000000001", "--domain", domain, "--role", "Things", "--psk", str(key), *tags)
    file.write_text(service.ok("bypass", "export", "--domain", domain))
    service.ok("bypass", "import", str(file), "--domain", other)
    rows = [json.loads(service.ok("bypass", "list", "--domain", each, "--json"))[0] for each in (domain, other)]
    for row in rows:
        assert (row["role"], row["tags"]) == ("things", {"owner": "it", "site": "Berlin, Mitte"})
    assert [row["hasPsk"] for row in rows] == [True, False]
    assert "correct horse" not in file.read_text() + str(rows)
    file.write_text("station,psk\n020000000001,'=battery=\n")
    service.ok("bypass", "import", str(file), "--domain", other)
    service.ok("bypass", "add", "020000000001", "--domain", domain, "--psk", "-", input="\n")
    for name, has_key in ((domain, False), (other, True)):
        assert json.loads(service.ok("bypass", "list", "--domain", name, "--json"))[0]["hasPsk"] is has_key
    missing = service.program("bypass", "add", "020000000001", "--domain", domain, "--psk", str(tmp_path / "none"))
    assert (missing.returncode, "No such file" in missing.stderr) == (1, True)
    refused = service.program("bypass", "add", "020000000001", "--domain", domain, "--psk", "-", input="secret\n")
    assert (refused.returncode, "--psk" in refused.stderr, "secret" in refused.stderr) == (1, True, False)


def test_unknown_stations_and_vendors(service: Service, tmp_path: Path) -> None:
    """The vendors in a file of the IEEE are shown with the stations. Another file is refused."""
    domain = add_domain(service, "of vendors")
    file = tmp_path / "oui.csv"
    file.write_text("Registry,Assignment,Organization Name\nMA-L,00A0C9,Example Corp.\n")
    assert "1 vendor written" in service.program("bypass", "vendors", str(file)).stderr
    service.ok("bypass", "add", "00a0c9000001", "--domain", domain)
    (row,) = json.loads(service.ok("bypass", "list", "--domain", domain, "--json"))
    assert (row["vendor"], row["randomised"]) == ("Example Corp.", False)
    assert json.loads(service.ok("bypass", "unknown", "--domain", domain, "--json")) == []
    file.write_text("not of the IEEE")
    assert service.program("bypass", "vendors", str(file)).returncode == 1
    assert "Example" in service.ok("bypass", "list", "--domain", domain, "--json")


def test_a_wrong_line_is_named(service: Service, tmp_path: Path) -> None:
    """An import names the line and the column of a wrong value, and imports nothing of its part of the file."""
    domain = add_domain(service, "not imported")
    file = tmp_path / "stations.csv"
    file.write_text("station,vlan\n020000000001,30\n020000000002,9999\n")
    for text, told in (
        ("station,until\n020000000001,\n020000000002,soon\n", "line 3: until"),
        ("station\n020000000001\nprinter\n", "line 3: station must be a MAC address"),
        ("station,vlan\n020000000001,9999\n", "vlan"),
        ("address\n020000000001\n", "unknown column address"),
        ("[" * 100_000, "nested too deeply"),
        ('station,tags\n020000000001,"site=a\nrole=b"\n', "line 3: tags must be separated by commas"),
        ('station,tags\n020000000001,a=b\n020000000002,"a=b,a=c"\n', "line 3: tags must have each key once"),
    ):
        file.write_text(text)
        done = service.program("bypass", "import", str(file), "--domain", domain)
        assert (done.returncode, told in done.stderr) == (1, True), done.stderr
    assert json.loads(service.ok("bypass", "list", "--domain", domain, "--json")) == []


def test_a_file_with_long_rows_is_imported(service: Service, tmp_path: Path) -> None:
    """Rows with many tags, which do not fit into one request, are imported in several."""
    domain = add_domain(service, "of long rows")
    file, tags = tmp_path / "stations.csv", ", ".join(f"k{number}={'v' * 128}" for number in range(32))
    lines = [f'{number:012x},"{tags}"\n' for number in range(600)]
    file.write_text("station,tags\n" + "".join(lines))
    service.ok("bypass", "import", str(file), "--domain", domain)
    (row,) = json.loads(service.ok("bypass", "list", "--domain", domain, "--search", "000000000257", "--json"))
    assert len(row["tags"]) == 32


def test_an_invalid_station_is_refused(service: Service) -> None:
    """The exit status is 1 for text that is not a MAC address, and 2 if no station is given. No station is added."""
    domain = add_domain(service, "not bypassed")
    assert service.program("bypass", "add", "printer", "--domain", domain).returncode == 1
    assert service.program("bypass", "add", "--domain", domain).returncode == 2
    assert json.loads(service.ok("bypass", "list", "--domain", domain, "--json")) == []
