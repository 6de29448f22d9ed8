"""The initial configuration files of agents, and their systemd units. The units give the agents minimal rights
(systemd.exec(5))."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sallyport.host.systemd import AGENT_PROGRAM

_HEAD: Final = """\
# Settings of a sallyport {agent} agent. The file contains secrets: set its mode to 600. At its first start, the agent
# replaces the enrolment key with a key of its own.
service = {service}
# ca_certificate = "/etc/sallyport/ca.pem"   # PEM; replaces the authorities of the system
# state_dir = "/var/lib/sallyport-agent"
enrolment_key = {key}

[{agent}]
"""
_ENDPOINT: Final = """\
# keys = "command"   # SSH keys for sshd's AuthorizedKeysCommand; "off": not managed; without it: in authorized_keys
# protected = ["admin"]   # accounts that the agent never changes
"""
_DIRECTORY: Final = """\
domain = {domain}
name = {name}   # name of the directory in the service
servers = {servers}   # such as ldaps://dc1.example.com; the agent uses the first that answers
start_tls = {start_tls}
base_dn = {base_dn}
bind_dn = {bind_dn}
bind_secret = ""   # password of bind_dn: enter it here
# filter = "(department=sales)"   # reads only matching accounts; groups and units are read in full
# attributes = ["telephoneNumber"]   # additional attributes to read
interval_minutes = 5
full_every_hours = 24
"""


@dataclass(frozen=True, slots=True)
class DirectoryPlace:
    """The settings of a directory that are already known when an agent's file is generated. certificate: the trusted
    certificates of the directory's servers, in PEM."""

    name: str = ""
    servers: Sequence[str] = ()
    base_dn: str = ""
    bind_dn: str = ""
    start_tls: bool = False
    certificate: str = ""

    @classmethod
    def of(cls, ldap: Mapping[str, object], wished: Mapping[str, object], name: str) -> "DirectoryPlace":
        """Return the settings in `wished`. A setting that is missing in `wished` is taken from `ldap`, the settings of
        the domain's first factor. name: the name of the directory if `wished` has none."""
        found = {field: wished.get(field) or ldap.get(field) for field in ("servers", "baseDN", "bindDN", "startTls")}
        servers = found["servers"]
        return cls(
            name=str(wished.get("directoryName") or name),
            servers=tuple(map(str, servers)) if isinstance(servers, Sequence) else (),
            base_dn=str(found["baseDN"] or ""),
            bind_dn=str(found["bindDN"] or ""),
            start_tls=bool(found["startTls"]),
            certificate="" if wished.get("servers") else str(ldap.get("caCertificate") or ""),
        )


def endpoint_file(service: str, key: str) -> str:
    """Return the initial text of an endpoint agent's file."""
    return _head("endpoint", service, key) + _ENDPOINT


def directory_file(service: str, key: str, domain_id: int, place: DirectoryPlace) -> str:
    """Return the initial text of a directory agent's file. The admin must add the bind secret and all settings that are
    missing."""
    own = _DIRECTORY.format(
        domain=domain_id,
        name=_quoted(place.name),
        servers=f"[{', '.join(map(_quoted, place.servers))}]",
        start_tls="true" if place.start_tls else "false",
        base_dn=_quoted(place.base_dn),
        bind_dn=_quoted(place.bind_dn),
    )
    trusted = f"ca_certificate = {_quoted(place.certificate)}\n" if place.certificate else ""
    return _head("directory", service, key) + own + trusted


def _head(agent: str, service: str, key: str) -> str:
    return _HEAD.format(agent=agent, service=_quoted(service), key=_quoted(key))


def _quoted(text: str) -> str:
    """Return a text as a TOML basic string. The result is a JSON string in which the character DEL is escaped as
    well."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


# --- units ----------------------------------------------------------------------------------------------------------

_COMMON: Final = """\
[Unit]
Description=Sallyport {agent} agent
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
ExecStart={program} {agent} --config {config}
Restart=on-failure
RestartSec=30
WatchdogSec=300
TimeoutStopSec=120
UMask=0077
StateDirectory={state}
StateDirectoryMode=0700
LimitCORE=0
MemoryMax={memory}
NoNewPrivileges=yes
PrivateTmp=yes
PrivateDevices=yes
ProtectClock=yes
ProtectControlGroups=yes
ProtectHostname=yes
ProtectKernelLogs=yes
ProtectKernelModules=yes
ProtectKernelTunables=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
LockPersonality=yes
SystemCallArchitectures=native
{own}
[Install]
WantedBy=multi-user.target
"""
# The endpoint agent runs as root and rewrites files in /etc and in home directories. It needs the capabilities over
# files, accounts and processes.
_ENDPOINT_UNIT: Final = """\
ProtectSystem=yes
CapabilityBoundingSet=CAP_AUDIT_WRITE CAP_CHOWN CAP_DAC_OVERRIDE CAP_DAC_READ_SEARCH CAP_FOWNER CAP_FSETID CAP_KILL
CapabilityBoundingSet=CAP_SETGID CAP_SETUID CAP_SYS_CHROOT CAP_SYS_PTRACE
"""
_DIRECTORY_UNIT: Final = """\
DynamicUser=yes
ProtectSystem=strict
ProtectHome=yes
CapabilityBoundingSet=
"""


@dataclass(frozen=True, slots=True)
class Installed:
    """The systemd unit and the configuration file of an agent.

    state: the name of the state directory below /var/lib. memory: the value of MemoryMax in the unit. own: lines of the
    unit that the units of other agents do not have.
    """

    agent: str
    config: Path
    state: str
    memory: str
    own: str

    @property
    def unit(self) -> str:
        """Return the unit's name."""
        return f"sallyport-agent-{self.agent}.service"

    @property
    def unit_path(self) -> Path:
        """Return the path of the unit."""
        return Path("/etc/systemd/system") / self.unit

    def text(self, program: Path) -> str:
        """Return the text of the unit. program: the absolute path of `sallyport` or `sallyport-agent`."""
        words = f"{program}" if program.name == AGENT_PROGRAM else f"{program} agent"
        return _COMMON.format(
            agent=self.agent, program=words, config=self.config, state=self.state, memory=self.memory, own=self.own
        )


AGENTS: Final = {
    each.agent: each
    for each in (
        Installed("endpoint", Path("/etc/sallyport/endpoint-agent.toml"), "sallyport-agent", "128M", _ENDPOINT_UNIT),
        # The agent runs as its own system user and rewrites its file, so the file is in its state directory.
        Installed(
            "directory",
            Path("/var/lib/sallyport-directory/directory-agent.toml"),
            "sallyport-directory",
            "512M",
            _DIRECTORY_UNIT,
        ),
    )
}
