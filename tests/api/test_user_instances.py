"""listAllEpmUsers: instanceIds, assign and the filters agree, also for users that get instances through groups."""

import pytest

from tests.api.test_endpoint_groups import ASSIGN as ASSIGN_MEMBERS
from tests.api.test_endpoint_groups import STATUS as GROUP_STATUS
from tests.api.test_endpoint_users import LIST, add_epm_user, listed
from tests.api.test_instances import ASSIGN_GROUPS, ASSIGN_USERS, add, add_group
from tests.api.world import Tenant


@pytest.fixture
def staff(tenant: Tenant) -> dict[str, int]:
    """Assign bob directly, carl through a group, and dora both ways. The group of emma is disabled, and fred has no
    instance.
    """
    web, mail = add(tenant, "web"), add(tenant, "mail")
    users = {name: add_epm_user(tenant, userName=name) for name in ("bob", "carl", "dora", "emma", "fred")}
    groups = {name: add_group(tenant, name) for name in ("staff", "former", "club")}
    tenant.ask(
        ASSIGN_USERS,
        domainId=tenant.domain,
        instanceIds=[web],
        userIds=[users["bob"], users["dora"]],
        action="add",
    )
    for group, machines, members in (
        ("staff", [web, mail], ["carl", "dora"]),
        ("former", [web], ["emma"]),
        ("club", [], ["fred"]),
    ):
        for machine in machines:
            fields = {"instanceId": [machine], "groupId": [groups[group]], "action": "add"}
            tenant.ask(ASSIGN_GROUPS, method="PUT", domainId=tenant.domain, **fields)
        ids = [users[each] for each in members]
        tenant.ask(ASSIGN_MEMBERS[0], domainId=tenant.domain, groupId=groups[group], userIds=ids, action="add")
    tenant.ask(GROUP_STATUS, method="PUT", domainId=tenant.domain, groupId=groups["former"], status="Disabled")
    return {**users, **groups, "web": web, "mail": mail}


@pytest.mark.parametrize(
    ("filter_by", "value", "names"),
    [
        pytest.param("assign", "true", ["bob", "carl", "dora"], id="assigned"),
        pytest.param("assign", "false", ["ann", "emma", "fred"], id="not assigned"),
        pytest.param("instanceIds", "web", ["bob", "carl", "dora"], id="direct and through the group"),
        pytest.param("instanceIds", "mail", ["carl", "dora"], id="through the group alone"),
        pytest.param("hostNames", "MAIL", ["carl", "dora"], id="by the name of the machine"),
    ],
)
def test_filters_agree_with_the_shown_values(
    tenant: Tenant, staff: dict[str, int], filter_by: str, value: str, names: list[str]
) -> None:
    """Each filter lists exactly the users whose entry shows the value, on every page. A disabled group assigns no
    instance.
    """
    wanted = {"filterBy": filter_by, "value": staff.get(value, value) if filter_by == "instanceIds" else value}
    pages = [
        tenant.ask(LIST, domainId=tenant.domain, filter=wanted, pageId=page, pageSize=2)
        for page in range(1, len(names) // 2 + 2)
    ]
    assert [each["userName"] for page in pages for each in page["epmUsers"]] == names
    assert {page["totalCount"] for page in pages} == {len(names)}


def test_instances_of_a_group_are_shown(tenant: Tenant, staff: dict[str, int]) -> None:
    """An instance that a user reaches both directly and through a group is in instanceIds once, and assign is true."""
    web, mail = staff["web"], staff["mail"]
    shown = {name: (each["instanceIds"], each["hostNames"], each["assign"]) for name, each in listed(tenant).items()}
    both = ([web, mail], ["web", "mail"], True)
    none: tuple[list[int], list[str], bool] = ([], [], False)
    assert shown == {
        "ann": none, "bob": ([web], ["web"], True), "carl": both, "dora": both, "emma": none, "fred": none,
    }  # fmt: skip
    assert list(listed(tenant, "userName", "a", instanceIds=[web])) == ["carl", "dora"]
    assert list(listed(tenant, "assign", "true", instanceIds=[staff["mail"]])) == ["carl", "dora"]


def test_a_group_that_grants_again(tenant: Tenant, staff: dict[str, int]) -> None:
    """A change of the group's status applies to the list at once, and so does the end of a membership."""
    fields = {"domainId": tenant.domain, "groupId": staff["former"]}
    tenant.ask(GROUP_STATUS, method="PUT", status="Active", **fields)
    assert list(listed(tenant, "assign", "true")) == ["bob", "carl", "dora", "emma"]
    fields = {"domainId": tenant.domain, "groupId": staff["staff"], "userIds": [staff["carl"], staff["dora"]]}
    tenant.ask(ASSIGN_MEMBERS[0], action="remove", **fields)
    assert list(listed(tenant, "assign", "true")) == ["bob", "dora", "emma"]
    assert list(listed(tenant, instanceIds=[staff["mail"]])) == []
