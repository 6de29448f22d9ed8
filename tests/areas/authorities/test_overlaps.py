"""Tests of the warnings about authorities."""

from dataclasses import replace

import pytest

from sallyport.areas.authorities.authority import Anchor, Authority, AuthorityTable, HolderKind
from sallyport.areas.authorities.overlaps import overlap, warnings_of
from sallyport.base.clock import SECOND

NOW = 1_767_225_600 * SECOND
LATER = NOW + 90 * 86_400 * SECOND


def never(_domain_id: int) -> bool:
    """Say that no domain has the first factor local."""
    return False


def authority(number: int, *, until: int = LATER, domain_ids: tuple[int, ...] = (1,), **fields: object) -> Authority:
    """Return an authority of the domain 1."""
    anchors = (Anchor(f"{number}", f"CN=CA {number}", until),)
    return Authority(number, 1, f"ca {number}", "", anchors, domain_ids, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("one", "other", "meets"),
    [
        ({}, {}, True),
        ({"kinds": (HolderKind.PEOPLE,)}, {"kinds": (HolderKind.MACHINES,)}, False),
        ({"realms": ("a.example",)}, {"realms": ("b.example",)}, False),
        ({"realms": ("a.example",)}, {"realms": ("A.EXAMPLE", "b")}, True),
        ({"realms": ("a.example",)}, {}, True),
        ({"groups": ("staff",)}, {"groups": ("guests",)}, False),
        ({"sid_prefixes": ("S-1-5-21-1",)}, {"sid_prefixes": ("S-1-5-21-1-2",)}, True),
        ({"sid_prefixes": ("S-1-5-21-1",)}, {"sid_prefixes": ("S-1-5-21-12",)}, False),
    ],
    ids=["all", "kinds", "realms", "same realm", "any realm", "groups", "SIDs within", "SIDs beside"],
)
def test_scopes_overlap(one: dict[str, object], other: dict[str, object], meets: bool) -> None:
    """Two authorities are told apart by any part of their scopes."""
    first, second = authority(1, **one), authority(2, **other)
    assert overlap(first, second) is overlap(second, first) is meets


def test_the_warnings_name_the_others() -> None:
    """An authority of other domains is no rival. An anchor that expires soon and an authority without a domain are
    named too."""
    first, second, elsewhere = authority(1), authority(2), authority(3, domain_ids=(2,))
    table = AuthorityTable.of([first, second, elsewhere], {})
    (text,) = warnings_of(first, table, NOW, never)
    assert "same users as ca 2:" in text
    assert warnings_of(elsewhere, table, NOW, never) == []
    alone = authority(4, until=NOW + SECOND, domain_ids=())
    assert [each.partition(",")[0] for each in warnings_of(alone, table, NOW, never)] == [
        "it belongs to no domain",
        "the certificate of CN=CA 4 expires on 2026-01-01: add the renewed one",
    ]
    assert "has expired" in warnings_of(authority(5, until=NOW - SECOND), table, NOW, never)[0]


def test_realms_tell_no_local_users_apart() -> None:
    """In a domain with the first factor local, all realms name the same users. Kinds still tell them apart."""
    first, second = authority(1, realms=("a.example",)), authority(2, realms=("b.example",))
    machines = authority(3, realms=("c.example",), kinds=(HolderKind.MACHINES,), domain_ids=(2,))
    table = AuthorityTable.of([first, second, machines], {})
    assert warnings_of(first, table, NOW, never) == []
    realms, rivals = warnings_of(first, table, NOW, lambda domain_id: domain_id == 1)
    assert realms.startswith("its realms tell no users apart") and "same users as ca 2:" in rivals
    assert warnings_of(machines, table, NOW, lambda domain_id: domain_id == 1) == []


def test_equal_subjects_are_named() -> None:
    """An authority of the same domain has the same subject and another key."""
    first = authority(1, kinds=(HolderKind.PEOPLE,))
    copy = replace(authority(2, kinds=(HolderKind.MACHINES,)), anchors=(Anchor("2", "CN=CA 1", LATER),))
    elsewhere = replace(copy, id=3, name="ca 3", domain_ids=(2,))
    table = AuthorityTable.of([first, copy, elsewhere], {})
    (text,) = warnings_of(first, table, NOW, never)
    assert text.startswith("it has the same subject as ca 2, and another key: CN=CA 1;")
    assert warnings_of(elsewhere, table, NOW, never) == []
