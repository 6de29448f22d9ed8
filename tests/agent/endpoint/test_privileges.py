"""Groups and rights: root rights, how they are reported, and how they are removed."""

from sallyport.agent.endpoint.accounts import MANAGED_GROUP
from sallyport.agentwire.report import DriftKind
from sallyport.agentwire.state import DesiredUser, Settings
from tests.agent.endpoint.host import (
    Agent,
    Host,
    Service,
    errors,
    needs_shadow,
)

pytestmark = needs_shadow
SUDOERS = "/etc/sudoers.d/sallyport"
PUT_BACK = Settings(put_back_privileges=True)


def test_groups_by_hand_and_privileges(host: Host, service: Service) -> None:
    """A group membership that an admin added by hand stays, unless it grants rights. Then it is reported, and removed
    if the setting requires it.
    """
    service.want(DesiredUser("ann", groups=("dev",)))
    agent = Agent(host, service)
    agent.pass_()
    group = host.path("/etc/group")
    group.write_text(
        group.read_text().replace("staff:x:50:", "staff:x:50:ann").replace("sudo:x:27:eve", "sudo:x:27:eve,ann")
    )
    report = agent.pass_()
    assert [(each.kind, each.name, each.put_back) for each in report.drift] == [(DriftKind.PRIVILEGE, "ann", False)]
    assert host.groups_of("ann") == {"dev", "staff", "sudo", MANAGED_GROUP}
    service.want(DesiredUser("ann"), settings=PUT_BACK)
    report = agent.pass_()
    assert [each.put_back for each in report.drift] == [True]
    assert host.groups_of("ann") == {"staff", MANAGED_GROUP}
    assert agent.pass_().drift == ()


def test_privilege_status(host: Host, service: Service) -> None:
    """Each account with root rights is reported with the reason. A right that was added by hand later is drift."""
    service.want(DesiredUser("ann", privileged=True))
    agent = Agent(host, service)
    agent.pass_()
    status = {each.name: each for each in service.statuses[-1].privileged}
    assert (status["ann"].managed, status["ann"].wanted) == (True, True)
    assert status["eve"].via == ("/etc/sudoers: %sudo ALL=(ALL:ALL) ALL",)
    assert service.statuses[-1].drift == ()
    host.path("/etc/sudoers.d/mine").write_text("bob ALL=(root) NOPASSWD: /usr/bin/less\n")
    agent.pass_()
    assert [(each.name, each.detail) for each in service.statuses[-1].drift] == [
        ("bob", "/etc/sudoers.d/mine: bob ALL=(root) NOPASSWD: /usr/bin/less")
    ]


def test_the_agents_sudoers_file_is_its_own(host: Host, service: Service) -> None:
    """A line that an admin adds to the agent's sudoers file is reported and removed."""
    service.want(DesiredUser("ann", privileged=True))
    agent = Agent(host, service)
    agent.pass_()
    path = host.path(SUDOERS)
    path.chmod(0o600)
    path.write_text(path.read_text() + "bob ALL=(ALL) NOPASSWD: ALL\n")
    report = agent.pass_()
    assert [(each.kind, each.put_back) for each in report.drift] == [(DriftKind.SUDOERS, True)]
    assert "bob" not in path.read_text()


def test_system_groups_are_for_privileged_users(host: Host, service: Service) -> None:
    """Only privileged users are added to a system group. The other values of an unprivileged user are applied."""
    service.want(DesiredUser("ann", groups=("staff", "dev")), DesiredUser("ben", groups=("staff",), privileged=True))
    report = Agent(host, service).pass_()
    assert errors(report.actions) == ["refuse ann: a system group"]
    assert host.groups_of("ann") == {"dev", MANAGED_GROUP}
    assert host.groups_of("ben") == {"staff", MANAGED_GROUP}


@needs_shadow
def test_users_named_like_groups_with_rights(host: Host, service: Service) -> None:
    """A user named docker gets no root rights, whether the group docker exists with any number or does not exist yet.

    No user gets a primary group that has other members.
    """
    group = host.path("/etc/group")
    group.write_text(group.read_text() + "docker:x:1700:\ndba:x:1701:bob\nann:x:1702:\n")
    service.want(
        DesiredUser("docker"),
        DesiredUser("sudo"),
        DesiredUser("lxd", groups=("docker", "incus")),
        DesiredUser("dba"),
        DesiredUser("ann"),
        DesiredUser("ben", groups=("docker",)),
    )
    report = Agent(host, service).pass_()
    users = host.users()
    assert {"ann", "ben"} <= users.keys()
    assert not {"docker", "sudo", "dba"} & users.keys()
    assert users["ann"].gid == 1702
    assert all("docker" not in each.groups for each in users.values())
    assert {"refuse docker", "refuse sudo", "refuse dba"} <= {
        error.partition(":")[0] for error in errors(report.actions)
    }
