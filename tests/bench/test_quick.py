"""The verdict of the short comparison with the commit before."""

from dataclasses import fields

import pytest

from .quick import is_slower
from .radload import Load


def load(cpu_us: float) -> Load:
    """Return measurements whose only value is the CPU time for each request."""
    return Load(**{each.name: cpu_us if each.name == "server_cpu_us_per_request" else 0 for each in fields(Load)})


@pytest.mark.parametrize(
    ("now", "slower"),
    [
        pytest.param((40, 41, 39, 40), False, id="as before"),
        pytest.param((45, 46, 44, 45), True, id="slower in each pair"),
        pytest.param((45, 46, 40, 45), False, id="as quick as before in one pair"),
        pytest.param((42, 42, 42, 43), False, id="within the spread"),
        pytest.param((20, 21, 20, 20), False, id="faster"),
    ],
)
def test_a_load_is_slower_only_if_every_pair_shows_it(now: tuple[int, ...], slower: bool) -> None:
    """The median must show a tenth more CPU time, and no pair may show less than 3 percent more."""
    assert is_slower([(load(40), load(each)) for each in now]) is slower
