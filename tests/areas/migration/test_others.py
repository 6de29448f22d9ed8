"""Tests of the imports from Cisco ISE, ClearPass, CSV files and FreeRADIUS, and of the child process."""

from pathlib import Path

import pytest

from sallyport.areas.configuration.item import Item
from sallyport.areas.migration import clearpass, freeradius, tables
from sallyport.areas.migration.child import ReaderLimits, translate
from sallyport.areas.migration.translation import Decision, Options, Translation, UniqueNames, Weight
from sallyport.base.errors import Invalid
from tests.areas.migration import client, export, policy, profile, rules, texts

OPTIONS = Options("corp")
ISE = (
    "Name:String(32):Required,Description:String(256),IP Address:Subnets(a.b.c.d/m|...):Required,"
    "Network Device Groups:String(100)(Type#Root Name#Name|...):Required,Authentication:Protocol:String(6),"
    "Authentication:Shared Secret:String(128),SNMP:RO Community:String(32)\n"
    "core,Core of Berlin,192.0.2.1/32|192.0.2.2/32,"
    "Location#All Locations#Berlin#Floor 2|Device Type#All Device Types#Switch|IPSEC#Is IPSEC Device,"
    "RADIUS,core-secret-1,public-community\n"
    "wlc,,198.51.100.0/24,Location#All Locations,RADIUS,wlc-secret-22,\n"
    "bare,,192.0.2.9/32,,RADIUS,,\n"
)
CLEARPASS = """<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<TipsContents xmlns="http://www.avendasys.com/tipsapiDefs/1.0">
  <TipsHeader exportTime="Mon Nov 23 10:00:00 CET 2026" version="6.11"/>
  <NadClients>
    <NadClient description="Hall 3" name="ap-1" nadGroups="" coaPort="3799" radsecEnabled="true" coaCapable="true"
      vendorName="Aruba" tacacsSecret="tacacs-secret" radiusSecret="cp-secret-333" ipAddress="192.0.2.10">
      <NadClientTags tagName="Site" tagValue="Berlin"/>
    </NadClient>
    <NadClient name="pool" coaCapable="false" vendorName="" radiusSecret="cp-secret-444" ipAddress="198.51.100.0/24"/>
  </NadClients>
  <Roles><Role name="Staff"/></Roles>
</TipsContents>
"""
USERS = r"""
# comment
alice   Cleartext-Password := "pass word", NAS-Port-Type == Ethernet
        Tunnel-Type = VLAN,
        Tunnel-Medium-Type = IEEE-802,
        Tunnel-Private-Group-Id = "20",
        Filter-Id = "staff"

bob     Cleartext-Password := 'b0b'
carl    Cleartext-Password := "c4rl"
dora    Crypt-Password := "$6$hash"
00-11-22-33-44-55  Cleartext-Password := "001122334455"
        Tunnel-Private-Group-Id = 30
evil    Auth-Type := Reject
        Reply-Message = "no"
DEFAULT LDAP-Group == "admins", Huntgroup-Name == "core"
        Service-Type = Administrative-User
DEFAULT NAS-Identifier =~ "^ap-[0-9]+$"
        Filter-Id = "aps"
DEFAULT Hint == "SLIP"
        Filter-Id = "slip", Fall-Through = Yes
"""


def folder(tmp_path: Path, users: str = USERS) -> Path:
    """Return a folder of FreeRADIUS."""
    top = tmp_path / "raddb"
    for name, text in {
        "clients.conf": "client core { ipaddr = 192.0.2.1\n secret = core-secret-1\n nas_type = cisco }\n"
        "client range { ipaddr = 198.51.100.0/24\n secret = range-secret-2\n require_message_authenticator = yes }\n"
        "client host { ipaddr = switch.example\n secret = xyz }\n",
        "mods-config/files/authorize": users,
        "mods-config/preprocess/huntgroups": "core NAS-IP-Address == 192.0.2.1\ncore NAS-IP-Address == 192.0.2.2\n",
        "mods-config/files/authorized_macs": "00-11-22-33-44-66\n        Tunnel-Private-Group-Id = 31\nprinter\n",
        "sites-enabled/default": "authorize {\n  if (User-Name == bob) {\n    reject\n  }\n}\n# if\n",
        "mods-enabled/ldap": "ldap corp {\n  password = ldap-secret-1\n}\n",
        "mods-config/files/accounting": "# nothing\n\nDEFAULT Realm == LOCAL\n",
        "mods-config/files/pre-proxy": "# nothing\n",
        "mods-config/perl/example.pl": "print;\n",
        "policy.d/filter": "filter_username {\n}\n",
        "proxy.conf": "proxy server {\n}\nrealm partner.example {\n  secret = proxy-secret-1\n}\n",
    }.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(text)
    return top


def of_kind(found: Translation, kind: str) -> dict[str, Item]:
    """Return the objects of a kind by name."""
    return {each.name: each for each in found.items if each.kind == kind}


def written(tmp_path: Path, name: str, text: str, encoding: str = "utf-8") -> Path:
    """Return the path of a file with a text."""
    path = tmp_path / name
    path.write_text(text, encoding=encoding)
    return path


class Counted(set[str]):
    """A set that counts how often a text is looked up."""

    lookups = 0

    def __contains__(self, text: object) -> bool:
        self.lookups += 1
        return super().__contains__(text)


MANY = 3_000


@pytest.mark.parametrize(
    "names",
    [["SW"] * MANY, [f"{'n' * 251}{n % 1_000:04}{n}" for n in range(MANY)]],
    ids=["one name", "names that are cut"],
)
def test_many_equal_names(names: list[str]) -> None:
    """Each gets a number. The search for a free one does not begin at 2 for each of them."""
    found = UniqueNames()
    found._taken = taken = Counted()
    numbered = [found.take(name) for name in names]
    assert len({each.casefold() for each in numbered}) == MANY and max(map(len, numbered)) <= 255
    assert taken.lookups <= 3 * MANY


def test_devices_with_one_name(tmp_path: Path) -> None:
    """Devices whose names differ only in case, or not at all, get numbers."""
    text = "name,ip,secret\n" + "".join(
        f"{name},10.0.0.{n},testing123\n" for n, name in enumerate(("sw (3)", "SW", "sw", "sw", "Sw"))
    )
    columns = {"name": "name", "address": "ip", "secret": "secret"}
    found = tables.translate(written(tmp_path, "t.csv", text), Options("corp", columns=columns))
    assert [item.name for item in found.items] == ["sw (3)", "SW", "sw (2)", "sw (4)", "Sw (5)"]


@pytest.mark.parametrize("first", ["sep=;\n", '"sep=;"\r\n', "SEP=;\n"])
def test_a_table_for_excel(tmp_path: Path, first: str) -> None:
    """The first line may name the separator. It is a line of the file."""
    columns = {"name": "name", "address": "ip", "secret": "secret"}
    path = written(tmp_path, "t.csv", f"{first}name;ip;secret\nsw,1;192.0.2.1;testing123\n")
    (item,) = tables.translate(path, Options("corp", columns=columns)).items
    assert (item.name, item.source) == ("sw,1", "t.csv:3")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_devices_of_ise(tmp_path: Path, encoding: str) -> None:
    """Each subnet is a client. Groups of devices become tags, without their roots. Columns without a place are
    findings, which show no value."""
    found = tables.translate_ise(written(tmp_path, "ise.csv", ISE, encoding), OPTIONS)
    core, second, wlc = [dict(each.fields) for each in found.items]
    assert core == {
        "name": "core", "address": "192.0.2.1", "secret": {"hex": b"core-secret-1".hex()}, "domains": ["corp"],
        "tags": ["location=Berlin/Floor 2", "device-type=Switch"], "note": "Core of Berlin",
    }  # fmt: skip
    assert (second["name"], second["address"]) == ("core (2)", "192.0.2.2")
    assert wlc["address"] == "198.51.100.0/24" and "tags" not in wlc
    said = texts(found)
    assert "bare (ise.csv:4): it has no secret" in said
    assert "SNMP:RO Community" in said and "public-community" not in said and "core-secret-1" not in said


def test_any_table_with_a_mapping(tmp_path: Path) -> None:
    """The mapping names the columns. A semicolon or a tab may separate the cells."""
    text = "Gerät;IP;PSK;Standort\nsw-1;192.0.2.1;semi;Köln\nsw-2;nowhere;semi;\n"
    columns = {"name": "gerät", "address": "IP", "secret": "PSK", "tag.site": "Standort"}
    found = tables.translate(written(tmp_path, "t.csv", text), Options("corp", columns=columns))
    (item,) = found.items
    assert (item.name, item.fields["tags"], item.source) == ("sw-1", ["site=Köln"], "t.csv:2")
    assert "sw-2 (t.csv:3): 'nowhere' is no address" in texts(found)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"name": "a", "address": "b"}, "give --map secret=COLUMN; the columns are a, b, c"),
        ({"name": "z"}, "no column 'z'; columns: a, b, c"),
        ({"nonsense": "a"}, "no field nonsense; fields: name, address"),
    ],
)
def test_a_wrong_mapping_is_refused(tmp_path: Path, columns: dict[str, str], reason: str) -> None:
    """The error names the columns or the fields."""
    with pytest.raises(Invalid, match=reason):
        tables.translate(written(tmp_path, "t.csv", "a,b,c\n1,2,3\n"), Options("corp", columns=columns))


ODD: dict[str, tuple[str, str]] = {
    "a byte order mark and CRLF": ("\ufeffname,ip,key\r\na,192.0.2.1,s\r\n", ""),
    "carriage returns alone": ("name,ip,key\ra,192.0.2.1,s\r", ""),
    "blank lines before the header": ("\n\nname,ip,key\na,192.0.2.1,s\n", ""),
    "a cell that an export has disarmed": ("name,ip,key\n'=1+1,192.0.2.1,s\n", ""),
    "a NUL in a name": ("name,ip,key\na\0b,192.0.2.1,s\n", "its name has control characters"),
    "a line end in a name": ('name,ip,key\n"a\nb",192.0.2.1,s\n', "its name has control characters"),
    "a terminal sequence in a note": ("name,ip,key,note\na,192.0.2.1,s,\x1b[31m\n", "its note has control characters"),
    "a zone": ("name,ip,key\na,fe80::1%eth0,s\n", "'fe80::1%eth0' is no address"),
    "a hidden secret": ("name,ip,key\na,192.0.2.1,********\n", "its secret is hidden by asterisks"),
    "a missing cell": ("name,ip,key\na,192.0.2.1\n", "it has no secret in the file"),
    "the same row twice": ("name,ip,key\na,192.0.2.1,s\na,192.0.2.1,s\n", "the client a has the same address"),
    "a very long note": (f"name,ip,key,note\na,192.0.2.1,s,{'x' * 5000}\n", "the note is cut after 1000 characters"),
}


@pytest.mark.parametrize("case", ODD)
def test_odd_tables(tmp_path: Path, case: str) -> None:
    """Each row is a client that can be stored, or a finding says why not."""
    text, said = ODD[case]
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    columns = {"name": "name", "address": "ip", "secret": "key", **({"note": "note"} if "note" in text else {})}
    found = tables.translate(path, Options("corp", columns=columns))
    assert (said in texts(found)) if said else not found.findings
    for item in found.items:
        assert item.fields["name"] in ("a", "=1+1") and len(str(item.fields.get("note", ""))) <= 1000


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("\ufeff", "no field|no column|is empty"),
        (",".join(f"c{number}" for number in range(100_000)), "the file has more than 500 columns"),
        ("\0" * 5000, "no column 'name'; columns: .{0,1000}$"),
        ("name,ip,key,key\na,192.0.2.1,s,other\n", "the column 'key' is there twice"),
        (f"name,ip,key\n{'x' * 200_000},192.0.2.1,s\n", "line 2: field larger than field limit"),
        ('name,ip,key\n"a,192.0.2.1,s\n', "line 2: unexpected end of data"),
        ("name,ip,key\na,192.0.2.1,s,more\n", "line 2: too many cells"),
    ],
    ids=[
        "nothing but a byte order mark",
        "100,000 columns",
        "nothing but NULs",
        "a column twice",
        "a very long cell",
        "an open quote",
        "too many cells",
    ],
)
def test_a_table_that_cannot_be_read(tmp_path: Path, text: str, reason: str) -> None:
    """Nothing is imported, and the error says where and why."""
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    with pytest.raises(Invalid, match=reason):
        tables.translate(path, Options("corp", columns={"name": "name", "address": "ip", "secret": "key"}))


@pytest.mark.parametrize(
    ("attribute", "value", "said"),
    [
        ("coaPort", "99999", "coaPort '99999' is no port"),
        ("coaPort", "9" * 5000, "is no port"),
        ("coaPort", "none", "coaPort 'none' is no port"),
        ("description", "x" * 5000, "the note is cut after 1000 characters"),
        ("radiusSecret", "********", "its secret is hidden by asterisks"),
        ("name", "a&#10;b", "its name has control characters"),
    ],
)
def test_odd_devices_of_clearpass(tmp_path: Path, attribute: str, value: str, said: str) -> None:
    """A value that cannot be stored is a finding, and stops no other device."""
    given = {"name": "sw", "ipAddress": "192.0.2.1", "radiusSecret": "cp-secret-333", attribute: value}
    one = " ".join(f'{name}="{each}"' for name, each in given.items())
    other = '<NadClient name="b" ipAddress="192.0.2.2" radiusSecret="cp-secret-333"/>'
    text = f"<TipsContents><NadClients><NadClient {one}/>{other}</NadClients></TipsContents>"
    found = clearpass.translate(written(tmp_path, "cp.xml", text), OPTIONS)
    assert said in texts(found)
    assert found.items[-1].name == "b"


def test_devices_of_clearpass(tmp_path: Path) -> None:
    """A device has its secret, its port for changes, and tags. Other elements and attributes are findings."""
    found = clearpass.translate(written(tmp_path, "cp.xml", CLEARPASS), OPTIONS)
    one, pool = [dict(each.fields) for each in found.items]
    assert one == {
        "name": "ap-1", "address": "192.0.2.10", "secret": {"hex": b"cp-secret-333".hex()}, "domains": ["corp"],
        "tags": ["vendor=Aruba", "site=Berlin"], "note": "Hall 3", "coaPort": 3799,
    }  # fmt: skip
    assert (pool["address"], pool["coaPort"]) == ("198.51.100.0/24", 0)
    said = texts(found)
    assert "tacacsSecret" in said and "tacacs-secret" not in said
    assert "radsecEnabled" in said and "Staff (cp.xml:11)" in said


def test_a_folder_of_freeradius(tmp_path: Path) -> None:
    """Clients, users with passwords in clear text, stations, and rules in the order of the entries. Hashes, unlang, and
    what cannot be expressed are findings."""
    found = freeradius.translate(folder(tmp_path), OPTIONS)
    assert of_kind(found, "client")["range"].fields["requireMessageAuthenticator"] == "yes"
    assert of_kind(found, "client")["core"].fields["product"] == "Cisco IOS"
    people = of_kind(found, "user")
    assert {name: each.fields["password"] for name, each in people.items()} == {
        "alice": "pass word", "bob": "b0b", "carl": "c4rl",
    }  # fmt: skip
    stations = of_kind(found, "bypass")
    assert sorted(str(each.fields["vlan"]) for each in stations.values()) == ["30", "31"]
    own = rules(found)
    assert [(each.name, each.fields["action"], each.fields.get("enabled", True)) for each in own] == [
        ("alice", "allow", True), ("bob", "allow", True), ("evil", "block", True), ("others", "allow", True),
        ("others (incomplete)", "allow", False), ("others (incomplete) (2)", "allow", False),
        ("FreeRADIUS: all other users", "allow", False),
        ("FreeRADIUS: refused", "block", True),
    ]  # fmt: skip
    assert own[0].fields["vlan"] == "20" and own[0].fields["attributes"] == ["NAS-Port-Type=Ethernet"]
    assert own[1].fields["users"] == ["bob", "carl", "dora"]
    assert own[3].fields["groups"] == ["admins"]
    assert own[3].fields["attributes"] == ["NAS-IP-Address=192.0.2.1", "NAS-IP-Address=192.0.2.2"]
    said = texts(found)
    for part in ("dora", "is a hash", "host", "printer", "sites-enabled", "unlang", "uses [", "Fall-Through"):
        assert part in said
    assert "core-secret-1" not in said and "b0b" not in said


def test_each_other_part_of_freeradius_is_a_finding(tmp_path: Path) -> None:
    """unlang, modules, realms and the other files have findings with file and line. No finding shows a value, and a
    file outside of the folder is not read."""
    top = folder(tmp_path)
    (tmp_path / "outside").write_text("if (User-Name == eve) {\n")
    (top / "sites-enabled/link").symlink_to(tmp_path / "outside")
    found = freeradius.translate(top, OPTIONS)
    assert {(each.source, each.name) for each in found.findings} >= {
        ("sites-enabled/default:2", "if"), ("sites-enabled/default:3", "reject"), ("mods-enabled/ldap:1", "ldap corp"),
        ("mods-config/files/accounting:3", "mods-config/files/accounting"), ("mods-config/perl", "mods-config/perl"),
        ("policy.d", "policy.d"), ("proxy.conf:3", "realm partner.example"),
        ("sites-enabled/link", "sites-enabled/link"),
    }  # fmt: skip
    said = texts(found)
    assert "pre-proxy" not in said and "secret-1" not in said and "User-Name ==" not in said


def test_an_entry_that_rejects_needs_a_decision(tmp_path: Path) -> None:
    """An entry that rejects by a condition that cannot be expressed is undecided, until the admin decides."""
    users = 'DEFAULT NAS-Identifier =~ "[a-z]", Auth-Type := Reject\n'
    found = freeradius.translate(folder(tmp_path, users), OPTIONS)
    assert [each.name for each in found.named(Weight.UNDECIDED)] == ["DEFAULT"]
    decided = freeradius.translate(folder(tmp_path, users), Options("corp", decisions={"DEFAULT": Decision.SKIP}))
    assert not decided.named(Weight.UNDECIDED)


def test_an_include_stays_in_the_folder(tmp_path: Path) -> None:
    """A file outside of the folder is not read."""
    (tmp_path / "outside").write_text("eve Cleartext-Password := x\n")
    with pytest.raises(Invalid, match="outside of the folder"):
        freeradius.translate(folder(tmp_path, "$INCLUDE ../../../outside\n"), OPTIONS)


def test_an_include_with_a_nul_character_is_refused(tmp_path: Path) -> None:
    """The error names the line. No path can have this character."""
    with pytest.raises(Invalid, match="authorize:1: the name of an included file has a NUL character"):
        freeradius.translate(folder(tmp_path, "$INCLUDE a\0b\n"), OPTIONS)


def test_a_child_process_reads_two_thousand_clients(tmp_path: Path) -> None:
    """The child process returns the translation, or the error of the reader."""
    given = [client(f"switch {number}", f"10.{number >> 8}.{number & 255}.1") for number in range(2000)]
    found = translate("nps", written(tmp_path, "nps.xml", export(given)), OPTIONS)
    assert len(of_kind(found, "client")) == 2000
    with pytest.raises(Invalid, match=r"bad.xml: line 1: the file is not valid XML"):
        translate("nps", written(tmp_path, "bad.xml", export()[:-9]), OPTIONS)


def test_a_file_that_needs_too_much_memory_is_refused(tmp_path: Path) -> None:
    """The limits of the child process hold, and the error says what to do. Beside the limit of memory, each allocation
    may become so slow that the limit of processor time ends the process."""
    given = [client(f"switch {number}", "192.0.2.1") for number in range(20_000)]
    path = written(tmp_path, "nps.xml", export(given))
    with pytest.raises(Invalid, match=r"export it in parts"):
        translate("nps", path, OPTIONS, ReaderLimits(10, 60 << 20))


@pytest.mark.system
def test_200_mb_are_read_or_refused(tmp_path: Path) -> None:
    """A file of 200 MB with parts that no reader needs is read. One with a million elements is refused."""
    path = tmp_path / "nps.xml"
    head, tail = export([client("a", "192.0.2.1")]).split("<SDO_Schema", 1)
    with path.open("w") as file:
        file.write(head)
        file.writelines(f"<!-- {'x' * 1000} -->" for _ in range(200_000))
        file.write(f"<SDO_Schema{tail}")
    assert path.stat().st_size > 200_000_000
    assert len(of_kind(translate("nps", path, OPTIONS), "client")) == 1
    with path.open("w") as file:
        file.write(head)
        file.writelines("<Odd><Value>1</Value></Odd>" for _ in range(300_000))
        file.write(f"<SDO_Schema{tail}")
    with pytest.raises(Invalid, match="more than 400000 elements"):
        translate("nps", path, OPTIONS)


def test_policies_with_the_same_answer_share_a_role(tmp_path: Path) -> None:
    """The answer of a rule becomes a role with the name of the first policy that has it. A rule whose answer has too
    many octets for a role keeps its attributes."""
    long = {"msCiscoAV": [f"ip:inacl#{number}=permit ip any any {'x' * 100}" for number in range(9)]}
    answers = [{"msRADIUSFilterId": "a"}, {"msRADIUSFilterId": "b"}, {"msRADIUSFilterId": "a"}, {}, long]
    port = 'MATCH("NAS-Identifier=^{}$")'.format
    names = [f"P{number}" for number in range(len(answers))]
    policies = [policy(name, number, [port(number)]) for number, name in enumerate(names)]
    profiles = [profile(name, **given) for name, given in zip(names, answers, strict=True)]
    found = translate("nps", written(tmp_path, "nps.xml", export(policies=policies, profiles=profiles)), OPTIONS)
    assert [each.fields.get("role") for each in rules(found)] == ["P0", "P1", "P0", None, None, None]
    assert "replyAttributes" not in rules(found)[0].fields and "replyAttributes" in rules(found)[4].fields
    assert dict(of_kind(found, "role")["P1"].fields) == {
        "domain": "corp", "role": "P1", "sets": [{"replyAttributes": [{"name": "Filter-Id", "value": "b"}]}],
    }  # fmt: skip


def test_rules_are_checked_against_the_dictionary(tmp_path: Path) -> None:
    """An attribute that the dictionary does not have disables a rule that allows, and needs a decision for one that
    blocks. A secret in the answer disables the rule too."""
    given = 'DEFAULT Hint == "SLIP"\nDEFAULT Nonsense == 1, Auth-Type := Reject\n'
    users = given + 'eve NAS-Port-Type == Ethernet\n        Tunnel-Password = "secret"\n'
    found = translate("freeradius", folder(tmp_path, users), OPTIONS)
    assert [(each.name, each.fields.get("enabled", True)) for each in rules(found)][:3] == [
        ("others (incomplete)", False), ("others (2)", False), ("eve (incomplete)", False),
    ]  # fmt: skip
    assert [each.name for each in found.named(Weight.UNDECIDED)] == ["others (2)"]
    decided = Options("corp", decisions={"others (2)": Decision.BLOCK})
    again = translate("freeradius", folder(tmp_path, users), decided)
    assert not again.named(Weight.UNDECIDED) and rules(again)[1].fields["everyone"] is True
