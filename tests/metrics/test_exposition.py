"""Tests of the names and help texts of all metrics, which promtool checks too."""

import re
import shutil

import pytest
import trio
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families

from sallyport.metrics import OPENMETRICS, render
from tests.metrics.everything import collected, registered

NAMES = [metric.name for metric in collected()]


def test_names_are_unique_and_well_formed() -> None:
    """A name starts with sallyport_, has only lowercase letters, and ends with its base unit, as Prometheus
    recommends."""
    assert len(NAMES) == len(set(NAMES))
    assert all(re.fullmatch(r"sallyport_[a-z][a-z_]*[a-z]", name) for name in NAMES)
    assert not any(name.endswith(("_ms", "_milliseconds", "_kb", "_mb", "_percent")) for name in NAMES)


def test_every_metric_has_a_sentence_of_help() -> None:
    """A help text starts with a capital letter, ends with a full stop, has at most 210 characters and no line break,
    and is unique."""
    helps = [metric.documentation for metric in collected()]
    assert len(helps) == len(set(helps))
    assert not [text for text in helps if not re.fullmatch(r"[A-Z][^\n]{3,208}\.", text)]


def test_there_are_no_created_series() -> None:
    """There are no _created series of the client library, because they would double the number of series."""
    assert b"_created" not in render(registered())


def test_openmetrics_is_well_formed_and_has_the_same_samples() -> None:
    """A scrape that accepts OpenMetrics gets it. The names and labels of the samples are those of the text format."""
    registry = registered()
    found = {
        (sample.name, tuple(sample.labels.items()))
        for family in openmetrics_families(render(registry, OPENMETRICS).decode())
        for sample in family.samples
    }
    plain = text_string_to_metric_families(render(registry).decode())
    assert found == {(each.name, tuple(each.labels.items())) for family in plain for each in family.samples} != set()


@pytest.mark.peer
async def test_promtool_accepts_the_metrics() -> None:
    """`promtool check metrics` reads and lints the exposition."""
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool (Debian's prometheus) is not installed")
    done = await trio.run_process(
        [promtool, "check", "metrics"],
        stdin=render(registered()),
        capture_stdout=True,
        capture_stderr=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
