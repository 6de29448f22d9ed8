"""Tests of the User-Name in a home server's Accept."""

import pytest

from sallyport.areas.login.first.upstream.rewrite import accepted_user
from sallyport.radius.password import Method
from tests.areas.login.first.upstream.conftest import Upstream
from tests.packets import pap


@pytest.mark.parametrize(
    ("outer", "named", "typed", "inside"),
    [
        ("ann", b"ann", "ann", "ann"),
        ("ann", b"ANN", "ann", "ann"),
        ("ann@corp", b"ann", "ann", "ann"),
        ("ann@corp", b"CORP\\Ann", "ann", "ann"),
        ("ann", b"ann@corp", "ann", "ann"),
        ("02-00-00-00-00-0a", b"02000000000A", "02-00-00-00-00-0a", "02-00-00-00-00-0a"),
        ("ann@corp", b"ann@other", "ann", None),
        ("anonymous@corp", b"alice", None, "alice"),
        ("anonymous@corp", b"CORP\\alice", None, "alice"),
        ("anonymous@corp", b"alice@mail@corp", None, "alice@mail"),
        ("anonymous@corp", b"alice@other", None, None),
        ("anonymous", b"alice@corp", None, "alice"),
        ("anonymous", b"alice@elsewhere", None, None),
        ("anonymous", "zoë".encode(), None, "zoë"),
        ("anonymous@corp", b"@corp", None, None),
        ("anonymous", b"", None, None),
        ("anonymous", b"ali\0ce", None, None),
        ("anonymous", b"ali\nce", None, None),
    ],
)
async def test_the_user_that_an_accept_names(
    upstream: Upstream, outer: str, named: bytes, typed: str | None, inside: str | None
) -> None:
    """An Accept may contain another user name only for EAP.

    The name must be valid and must not belong to another realm.
    """
    login = upstream.login(pap(outer, "hello"))
    login.domain = upstream.areas.domains.table.by_id[upstream.areas.domain]
    login.user = outer.partition("@")[0]
    for method, user in ((Method.PAP, typed), (Method.MSCHAP2, typed), (Method.EAP, inside)):
        login.method = method
        assert accepted_user(login, named) == user
