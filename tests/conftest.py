"""What holds for all tests."""

import pytest


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Octets and long texts are named by their place: some are random, and the processes of a parallel run have to
    agree on the names of tests."""
    is_long = isinstance(val, str) and len(val) > 60
    return argname if is_long or isinstance(val, bytes) else None
