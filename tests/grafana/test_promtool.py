"""Prometheus' own tool on the rules and the configuration."""

import shutil

import pytest
import trio
import yaml

from tests.grafana.expressions import DIRECTORY, RULE_TESTS, RULES, rules

pytestmark = pytest.mark.peer


async def promtool(*args: object) -> str:
    """Run promtool, which must succeed, and return its output."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool (Debian's prometheus) is not installed")
    done = await trio.run_process(
        [program, *map(str, args)], capture_stdout=True, capture_stderr=True, check=False, cwd=DIRECTORY
    )
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, said
    return said


async def test_the_rules_are_sound() -> None:
    """`promtool check rules` accepts the rules and counts each."""
    said = await promtool("check", "rules", *RULES)
    assert sum(int(line.split()[1]) for line in said.splitlines() if "rules found" in line) == len(rules())


async def test_the_configuration_is_sound() -> None:
    """`promtool check config` reads it with the rule files that it names."""
    assert "FAILED" not in await promtool("check", "config", DIRECTORY / "prometheus" / "prometheus.yml")


@pytest.mark.parametrize("file", RULE_TESTS, ids=lambda path: path.stem)
async def test_the_rules_do_what_they_say(file: object) -> None:
    """With `promtool test rules` each alert fires on its cause and only then."""
    assert "SUCCESS" in await promtool("test", "rules", file)


def test_every_alert_has_a_test() -> None:
    """Each alert has a test in which it fires."""
    tested = "".join(file.read_text(encoding="utf-8") for file in RULE_TESTS)
    cases = yaml.safe_load_all(tested.replace("rule_files:", "---\nrule_files:"))
    assert all(case is None or case["tests"] for case in cases)
    names = [str(rule["alert"]) for rule in rules() if "alert" in rule]
    assert not [name for name in names if name not in tested and name.rstrip("FastSlow") not in tested]
