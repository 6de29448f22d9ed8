"""promtool accepts the rules and the configuration, and runs the tests of the rules."""

import shutil

import pytest
import trio
import yaml

from tests.grafana.expressions import DIRECTORY, RULE_TESTS, RULES, rules

pytestmark = pytest.mark.peer


async def promtool(*args: object) -> str:
    """Run promtool and return its output. It must succeed."""
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("promtool (Debian's prometheus) is not installed")
    done = await trio.run_process(
        [program, *map(str, args)], capture_stdout=True, capture_stderr=True, check=False, cwd=DIRECTORY
    )
    output = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, output
    return output


async def test_promtool_accepts_the_rules() -> None:
    """`promtool check rules` finds no error and counts each rule."""
    output = await promtool("check", "rules", *RULES)
    assert sum(int(line.split()[1]) for line in output.splitlines() if "rules found" in line) == len(rules())


async def test_promtool_accepts_the_configuration() -> None:
    """`promtool check config` reads the configuration and the rule files that it names."""
    assert "FAILED" not in await promtool("check", "config", DIRECTORY / "prometheus" / "prometheus.yml")


@pytest.mark.parametrize("file", [pytest.param(each, id=each.stem) for each in RULE_TESTS])
async def test_each_alert_fires_only_for_its_cause(file: object) -> None:
    """`promtool test rules` succeeds."""
    assert "SUCCESS" in await promtool("test", "rules", file)


def test_slow_evaluations_take_the_groups_in_order() -> None:
    """weeks.yml names each group, recorded series first. promtool puts a group that is not named at the front."""
    order = yaml.safe_load((DIRECTORY / "prometheus" / "tests" / "weeks.yml").read_text(encoding="utf-8"))
    files = sorted(RULES, key=lambda file: file.stem != "recording")
    groups = [group["name"] for file in files for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]]
    assert order["group_eval_order"] == groups


def test_every_alert_has_a_test() -> None:
    tested = "".join(file.read_text(encoding="utf-8") for file in RULE_TESTS)
    cases = yaml.safe_load_all(tested.replace("rule_files:", "---\nrule_files:"))
    assert all(case is None or case["tests"] for case in cases)
    names = [str(rule["alert"]) for rule in rules() if "alert" in rule]
    assert not [name for name in names if name not in tested and name.rstrip("FastSlow") not in tested]
