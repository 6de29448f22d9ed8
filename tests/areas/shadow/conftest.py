"""A domain with the logs of another server."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.areas.shadow.bodies import OldServerLogin
from sallyport.areas.shadow.logs.reading import read_logs
from sallyport.areas.shadow.logs.record import OldLogin, Tally
from sallyport.areas.shadow.operations import shadow_of
from sallyport.areas.shadow.repo import Filter
from sallyport.areas.shadow.report import ShadowReport, Wanted
from tests.areas import Areas, areas, clock
from tests.areas.shadow.files import Packet, write

__all__ = ["areas", "clock"]

Result = tuple[str, str, str, str]


@dataclass
class Office:
    """A domain whose logins another server decides."""

    areas: Areas
    path: Path

    async def rule(self, name: str, action: str, **fields: Any) -> int:
        """Add a rule to the domain, and return its ID."""
        body = {"name": name, "action": action, **fields}
        return await self.areas.rules.add(self.areas.domain, RuleFields.model_validate(body))

    async def users(self, *names: str) -> None:
        """Add endpoint users to the domain."""
        for name in names:
            await self.areas.add_user(self.areas.domain, name, b"hello")

    async def log(self, *packets: Packet) -> int:
        """Record the logins of a log of NPS, and return how many are new."""
        return await self.record(list(read_logs([write(self.path, packets)], UTC, Tally())))

    async def record(self, logins: Sequence[OldLogin]) -> int:
        """Record logins, and return how many are new."""
        shadow = self.areas.app.shadow
        found = [shadow_of(OldServerLogin.model_validate(each.body()), shadow.attributes) for each in logins]
        return await shadow.service.record(self.areas.domain, found)

    async def report(self, device: str = "", user: str = "", **wanted: Any) -> ShadowReport:
        """Return the report of the domain."""
        return await self.areas.app.shadow.service.report(
            self.areas.domain, Filter(device, user), Wanted(**{"cases": 1000, **wanted})
        )

    async def results(self, **wanted: Any) -> dict[str, Result]:
        """Return the result, the decision, the reason and the rule of the logins, by user."""
        found = await self.report(**wanted)
        same = await self.report(**{"result": "same", **wanted})
        return {
            each.user: (each.result.value, each.decision, each.reason, each.rule)
            for each in (*found.cases, *same.cases)
        }


@pytest.fixture
async def office(areas: Areas, tmp_path: Path) -> Office:
    """A domain with the RADIUS client vpn, whose addresses begin with 192.0.2."""
    await areas.client("192.0.2.1/32", name="vpn", product="Cisco ASA")
    return Office(areas, tmp_path / "IN2601.log")
