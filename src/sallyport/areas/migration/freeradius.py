"""FreeRADIUS 3: its folder, such as /etc/freeradius/3.0.

`areas.clients.freeradius` reads the clients. The users file becomes endpoint users (only Cleartext-Password, because
Sallyport stores no other hashes), bypass stations (names that are MAC addresses), and rules in the order of the
entries. unlang and modules cannot be expressed: `freeradius_rest` lists them. FreeRADIUS accepts each user whose
password is right unless unlang refuses the login, so the rule that allows the others is imported disabled.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from sallyport.areas.clients import freeradius
from sallyport.areas.configuration.item import Item
from sallyport.areas.migration.archives import unpack
from sallyport.areas.migration.freeradius_rest import rest_of
from sallyport.areas.migration.freeradius_users import Entry, Pair, entries
from sallyport.areas.migration.nps_pattern import Inexpressible, Value, values_of
from sallyport.areas.migration.nps_policy import Conditions
from sallyport.areas.migration.translation import (
    FIRST_PRIORITY,
    INCOMPLETE,
    STEP,
    Decision,
    Finding,
    Options,
    Translation,
    UniqueNames,
    Weight,
    last_rule,
    listed_domain,
)
from sallyport.base.errors import ClientsFileError, Invalid
from sallyport.base.mac import mac_key, mac_text
from sallyport.base.wire import JSON

USERS: Final = ("mods-config/files/authorize", "users")
HUNTGROUPS: Final = ("mods-config/preprocess/huntgroups", "huntgroups")
MACS: Final = ("mods-config/files/authorized_macs", "authorized_macs")
_HASHES: Final = re.compile(
    r"(?i)(?:crypt|md5|smd5|sha\d*|ssha\d*|nt|lm|user|password-with-header)-?password|password-"
)
MAX_USERS: Final = 1000
_VLAN: Final = {"Tunnel-Type": {"VLAN", "13"}, "Tunnel-Medium-Type": {"IEEE-802", "6"}}
_GROUP_ID: Final = "Tunnel-Private-Group-Id"
_EVERYONE: Final = "FreeRADIUS: all other users"
_LAST: Final = "FreeRADIUS: refused"
_GROUPS: Final = ("LDAP-Group", "SQL-Group", "Group")


@dataclass(slots=True)
class _Import:
    folder: Path
    options: Options
    within: Path | None = None
    items: list[Item] = field(default_factory=list)
    rules: list[Item] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    huntgroups: dict[str, list[str]] = field(default_factory=dict)
    names: UniqueNames = field(default_factory=UniqueNames)

    def find(self, weight: Weight, entry: Entry, text: str) -> None:
        self.findings.append(Finding(weight, entry.name, entry.source, text))

    def file(self, names: Iterable[str]) -> Path | None:
        return next((self.folder / name for name in names if (self.folder / name).is_file()), None)


def translate(path: Path, options: Options, *, within: Path | None = None) -> Translation:
    """Read a folder of FreeRADIUS. within: the folder that has all files that clients.conf includes; None if they may
    be anywhere. Raises Invalid, OSError."""
    if not path.is_dir():
        raise Invalid("give the folder of FreeRADIUS, such as /etc/freeradius/3.0")
    found = _Import(path, options, within)
    _read_clients(found)
    _read_huntgroups(found)
    if (macs := found.file(MACS)) is not None:
        for entry in entries(macs, path):
            _add_station(found, entry, mac_key(entry.name))
    if (users := found.file(USERS)) is not None:
        _read_users(found, entries(users, path))
    read = [found.folder / name for name in (*USERS, *HUNTGROUPS, *MACS)]
    found.findings += rest_of(found.folder, read)
    return Translation([listed_domain(options, path.name), *found.items, *_with_priorities(found)], found.findings)


def translate_archive(archive: Path, folder: Path, options: Options) -> Translation:
    """Read an archive of a folder of FreeRADIUS. folder: an empty folder, which gets its files. Raises Invalid,
    OSError."""
    top = folder / "freeradius"
    top.mkdir()
    unpack(archive, top)
    places = sorted(top.rglob("clients.conf"), key=lambda each: (len(each.parts), each))
    if not places:
        raise Invalid("the archive has no clients.conf: pack the folder of FreeRADIUS, such as /etc/freeradius/3.0")
    head = f"{places[0].parent}/"
    try:
        found = translate(places[0].parent, options, within=top)
    except Invalid as error:
        raise Invalid(str(error).replace(head, "")) from None
    findings = [
        replace(each, source=each.source.removeprefix(head), text=each.text.replace(head, ""))
        for each in found.findings
    ]
    return Translation([replace(each, source=each.source.removeprefix(head)) for each in found.items], findings)


# --- clients and groups of clients ------------------------------------------------------------------------------------


def _read_clients(found: _Import) -> None:
    path = found.file(("clients.conf",))
    if path is None:
        raise Invalid("the folder has no clients.conf")
    try:
        read = freeradius.read(path, within=found.within)
    except ClientsFileError as error:
        raise Invalid(str(error)) from None
    for each in read:
        text = str(each.addresses)
        fields = {
            "name": each.name,
            "address": text.removesuffix("/32") if each.addresses.version == 4 else text.removesuffix("/128"),
            "secret": {"hex": each.secret.reveal().hex()},
            "product": each.product or "",
            "requireMessageAuthenticator": each.require_message_authenticator,
            "limitProxyState": each.limit_proxy_state,
            "domains": [found.options.domain],
        }
        found.items.append(Item("client", each.name, fields, each.where))
        found.findings += [Finding(Weight.NOTE, each.name, each.where, note) for note in each.notes]
    found.findings += [Finding(Weight.LEFT_OUT, each.name, each.where, each.reason) for each in read.unusable]


def _read_huntgroups(found: _Import) -> None:
    path = found.file(HUNTGROUPS)
    for entry in entries(path, found.folder) if path is not None else ():
        address = entry.check("NAS-IP-Address")
        if address is None or len(entry.checks) > 1 or entry.replies or address.sign != "==":
            text = "the huntgroup has conditions other than one NAS-IP-Address; rules that name it are disabled"
            found.find(Weight.LEFT_OUT, entry, text)
            found.huntgroups.setdefault(entry.name, []).append("")
        else:
            found.huntgroups.setdefault(entry.name, []).append(address.value)


# --- users ------------------------------------------------------------------------------------------------------------


def _read_users(found: _Import, given: Sequence[Entry]) -> None:
    names = set[str]()
    for entry in given:
        password, mac = entry.check("Cleartext-Password"), mac_key(entry.name)
        accepts = (kind := entry.check("Auth-Type")) is not None and kind.value.casefold() == "accept"
        if mac and (accepts or (password is not None and mac_key(password.value) == mac)):
            _add_station(found, entry, mac)
            continue
        if password is not None and entry.name != "DEFAULT":
            if entry.name.casefold() in names:
                found.find(Weight.LEFT_OUT, entry, "the user occurs twice; the first password is imported")
            elif not password.value:
                found.find(Weight.LEFT_OUT, entry, "the password is empty, so the user is not imported")
            else:
                names.add(entry.name.casefold())
                fields = {"domain": found.options.domain, "userName": entry.name, "password": password.value}
                found.items.append(Item("user", entry.name, fields, entry.source))
        _add_rule(found, entry)
    if not any(rule.fields.get("everyone") and rule.fields["enabled"] for rule in found.rules):
        everyone: dict[str, JSON] = {"name": _EVERYONE, "action": "allow", "enabled": False, "everyone": True}
        found.rules.append(Item("rule", _EVERYONE, everyone, found.folder.name))
        text = (
            "FreeRADIUS accepts each user whose password is right, unless unlang refuses the login. Check unlang, and "
            "enable the rule if the other users may log in"
        )
        found.findings.append(Finding(Weight.DISABLED, _EVERYONE, found.folder.name, text))


def _add_station(found: _Import, entry: Entry, mac: str) -> None:
    if not mac or entry.problem:
        found.find(Weight.LEFT_OUT, entry, entry.problem or "is no MAC address")
        return
    vlan, others = _replies(entry)
    if others:
        text = f"the attributes {', '.join(each.name for each in others)} of the station are not imported"
        found.find(Weight.LEFT_OUT, entry, text)
    extra = [each.name for each in entry.checks if each.name not in ("Cleartext-Password", "Auth-Type")]
    if extra:
        found.find(Weight.LEFT_OUT, entry, f"a station with the condition {', '.join(extra)} is not imported")
        return
    fields = {"domain": found.options.domain, "station": mac_text(mac), "vlan": vlan}
    found.items.append(Item("bypass", mac_text(mac), fields, entry.source))


def _add_rule(found: _Import, entry: Entry) -> None:
    """Add the rule of an entry, or its name to the rule before, if both differ only in the user."""
    auth = entry.check("Auth-Type")
    rejects = auth is not None and auth.value.casefold() == "reject"
    conditions, hashed = Conditions(), False
    if entry.problem:
        conditions.problems.append(entry.problem)
    if entry.name != "DEFAULT":
        conditions.put("users", [entry.name], "the name")
    for check in entry.checks:
        if _HASHES.match(check.name):
            hashed = True
        elif check.name not in ("Cleartext-Password", "Auth-Type"):
            _add_check(found, conditions, check)
    if auth is not None and auth.value.casefold() not in ("reject", "local", "pap", "chap", "eap", "mschap", "ldap"):
        conditions.problems.append(f"Auth-Type {auth.value}")
    if hashed:
        found.find(Weight.LEFT_OUT, entry, "the password is a hash, which Sallyport does not store: set a new one")
    vlan, replies = _replies(entry)
    if entry.falls_through and (replies or vlan):
        conditions.problems.append("Fall-Through adds the attributes to those of later entries")
    elif entry.falls_through and not rejects:
        return  # only a password: the entries behind it decide
    _add(found, entry, conditions, vlan, replies, rejects=rejects)


def _add(
    found: _Import, entry: Entry, conditions: Conditions, vlan: str, replies: Sequence[Pair], *, rejects: bool
) -> None:
    decision = found.options.decisions.get(entry.name)
    enabled = not conditions.problems
    problem = "; ".join(conditions.problems)
    if rejects and problem:
        if decision is Decision.SKIP:
            found.find(Weight.LEFT_OUT, entry, f"rejects, and is left out as decided: {problem}")
            return
        enabled = decision is Decision.BLOCK
        text = f"the entry rejects, but {problem}. Decide with --decide '{entry.name}=block' or '{entry.name}=skip'"
        weight = Weight.NOTE if enabled else Weight.UNDECIDED
        found.find(weight, entry, f"blocks more, as decided: {problem}" if enabled else text)
    elif problem:
        found.find(Weight.DISABLED, entry, problem)
    fields: dict[str, JSON] = {"action": "block" if rejects else "allow", "enabled": enabled}
    fields |= {name: list[JSON](values) for name, values in conditions.fields.items()}
    if not conditions.fields:
        fields["everyone"] = True
    if not rejects and vlan:
        fields["vlan"] = vlan
    if not rejects and replies:
        fields["replyAttributes"] = [{"name": each.name, "value": each.value} for each in replies]
    if found.rules and _joins(found.rules[-1], fields):
        return
    name = "others" if entry.name == "DEFAULT" else entry.name
    name = found.names.take(name + INCOMPLETE * (not rejects and not enabled))
    found.rules.append(Item("rule", name, {"name": name, **fields}, entry.source))


def _joins(last: Item, fields: dict[str, JSON]) -> bool:
    """Add the user of a rule to the rule before, if the rules are equal otherwise. Return whether it was added."""
    users, own = last.fields.get("users"), fields.get("users")
    same = {name: value for name, value in last.fields.items() if name not in ("users", "name")}
    if not isinstance(users, list) or not isinstance(own, list) or len(users) == MAX_USERS:
        return False
    if same != {name: value for name, value in fields.items() if name != "users"}:
        return False
    users += own
    return True


def _add_check(found: _Import, conditions: Conditions, check: Pair) -> None:
    what = f"{check.name} {check.sign} ..."
    if check.name == "Huntgroup-Name" and check.sign == "==":
        addresses = found.huntgroups.get(check.value, [""])
        if "" in addresses:
            conditions.problems.append(f"the huntgroup {check.value} cannot be expressed")
        else:
            conditions.put_attribute("NAS-IP-Address", [Value(each, False) for each in addresses], what)
    elif check.name in _GROUPS and check.sign == "==":
        conditions.put("groups", [check.value], what)
    elif check.sign == "==":
        conditions.put_attribute(check.name, [Value(check.value, False)], what)
    elif check.sign == "=~":
        try:
            conditions.put_attribute(check.name, values_of(check.value), what)
        except Inexpressible as error:
            conditions.problems.append(f"the regular expression of {check.name} {error}")
    else:
        conditions.problems.append(f"the condition {what} cannot be expressed")


def _replies(entry: Entry) -> tuple[str, list[Pair]]:
    """Return the VLAN and the other attributes of the answer."""
    others = [each for each in entry.replies if each.name != "Fall-Through"]
    kinds = {each.name.partition(":")[0]: each.value for each in others}
    group = kinds.get(_GROUP_ID, "")
    if group and all(
        kinds.get(name, "VLAN" if name == "Tunnel-Type" else "6") in values for name, values in _VLAN.items()
    ):
        others = [each for each in others if not each.name.startswith((_GROUP_ID, *_VLAN))]
        return group, others
    return "", others


def _with_priorities(found: _Import) -> list[Item]:
    rules = [
        Item(
            "rule",
            rule.name,
            {**rule.fields, "domain": found.options.domain, "priority": FIRST_PRIORITY + number * STEP},
            rule.source,
        )
        for number, rule in enumerate(found.rules)
    ]
    name = found.names.take(_LAST)
    return [*rules, last_rule(found.options.domain, name, FIRST_PRIORITY + len(rules) * STEP, found.folder.name)]
