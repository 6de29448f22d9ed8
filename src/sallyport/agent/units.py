"""The systemd units of the agents (systemd.exec(5)), as tight as their work allows."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

_COMMON: Final = """\
[Unit]
Description=Sallyport {agent} agent
Wants=network-online.target
After=network-online.target

[Service]
Type=notify
ExecStart={program} agent {agent} --config {config}
Restart=on-failure
RestartSec=30
WatchdogSec=300
TimeoutStopSec=120
UMask=0077
StateDirectory={state}
StateDirectoryMode=0700
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
# It rewrites /etc and homes as root; of root's rights it needs those over files, accounts and processes.
_ENDPOINT: Final = """\
ProtectSystem=yes
CapabilityBoundingSet=CAP_AUDIT_WRITE CAP_CHOWN CAP_DAC_OVERRIDE CAP_DAC_READ_SEARCH CAP_FOWNER CAP_FSETID CAP_KILL
CapabilityBoundingSet=CAP_SETGID CAP_SETUID CAP_SYS_CHROOT CAP_SYS_PTRACE
"""
_DIRECTORY: Final = """\
DynamicUser=yes
ProtectSystem=strict
ProtectHome=yes
CapabilityBoundingSet=
"""


@dataclass(frozen=True, slots=True)
class Installed:
    """Where an agent's unit and file are. state: the directory of its state, beneath /var/lib."""

    agent: str
    config: Path
    state: str
    memory: str
    own: str

    @property
    def unit(self) -> str:
        """The unit's name."""
        return f"sallyport-agent-{self.agent}.service"

    @property
    def unit_path(self) -> Path:
        """Where the unit is."""
        return Path("/etc/systemd/system") / self.unit

    def text(self, program: Path) -> str:
        """The unit. program: the absolute path of `sallyport`."""
        return _COMMON.format(
            agent=self.agent, program=program, config=self.config, state=self.state, memory=self.memory, own=self.own
        )


AGENTS: Final = {
    each.agent: each
    for each in (
        Installed("endpoint", Path("/etc/sallyport/endpoint-agent.toml"), "sallyport-agent", "128M", _ENDPOINT),
        # Its file lies in its state directory: it runs as a user of its own, and rewrites its keys there.
        Installed(
            "directory",
            Path("/var/lib/sallyport-directory/directory-agent.toml"),
            "sallyport-directory",
            "512M",
            _DIRECTORY,
        ),
    )
}
