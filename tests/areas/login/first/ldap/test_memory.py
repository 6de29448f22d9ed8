"""The cache of right passwords."""

from sallyport.areas.login.first.ldap.memory import MAX_TOTAL_LENGTH, Memory
from sallyport.areas.login.login import Found


def test_the_cache_has_a_limit() -> None:
    """If all entries together have more groups than the limit, the oldest entries are removed."""
    memory, size = Memory(300), MAX_TOTAL_LENGTH // 4
    for number in range(6):
        memory.keep(f"u{number}", "hello", Found(groups=frozenset({f"{number}" * size})))
    assert [memory.recall(f"u{number}", "hello") is not None for number in range(6)] == [False, False] + [True] * 4
    memory.keep("u5", "hello", Found(groups=frozenset({"5" * size})))
    assert memory.recall("u2", "hello") is not None
