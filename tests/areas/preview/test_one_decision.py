"""Tests that preview and login share one decision function: the preview of a recorded login agrees with a
real login."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sallyport.areas.domains.domain import Fallback, Mode
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.areas.preview.rule_test import Question
from sallyport.base.clock import SECOND
from tests.areas import Areas, SetClock, running_store
from tests.areas.login.conftest import Answers, FakeListener
from tests.areas.preview.conftest import Scripted
from tests.packets import attributes, pap

STATION = b"02-00-00-00-00-01"
NAS = b"vpn-1"


@dataclass(frozen=True)
class Scene:
    """A login, and the domain that decides it."""

    rules: tuple[tuple[tuple[str, object], ...], ...]
    provider: str
    fallback: Fallback
    user: str
    station: bool
    service_type: int | None
    wireless: bool
    hour: int
    gone: bool

    @property
    def body(self) -> bytes:
        """Return the attributes of the request, without the password."""
        values = {"NAS_IDENTIFIER": NAS, "NAS_PORT_TYPE": (19 if self.wireless else 5).to_bytes(4)}
        if self.wireless:
            values["CALLED_STATION_ID"] = b"02-00-00-00-00-99:corp"
            values["NAS_PORT_ID"] = b"radio 1"
            values["TUNNEL_CLIENT_ENDPOINT"] = b"198.51.100.7"
        if self.station:
            values["CALLING_STATION_ID"] = STATION
        if self.service_type is not None:
            values["SERVICE_TYPE"] = self.service_type.to_bytes(4)
        return attributes(**values)


CONDITIONS = st.lists(
    st.sampled_from(
        [
            ("users", ["ANN"]), ("users", ["bob", "ann"]), ("users", ["eve"]), ("groups", ["staff"]), ("ous", ["x"]),
            ("clients", ["192.0.2.1/32"]), ("clients", ["192.0.2.0/24"]), ("clients", ["10.0.0.0/8"]),
            ("products", ["Cisco ASA"]), ("media", ["Virtual"]), ("media", ["Wireless"]),
            ("stations", [STATION.decode()]), ("stations", ["02-00-00-00-00-99"]), ("serviceTypes", ["Login-User"]),
            ("ssids", ["Corp"]), ("ports", ["radio ?"]), ("methods", ["pap"]), ("methods", ["eap-tls"]),
            ("realms", ["corp"]), ("addresses", ["198.51.100.0/24"]),
            ("serviceTypes", ["Framed-User"]), ("time", {"from": "08:00", "until": "18:00", "timezone": "UTC"}),
            ("time", {"days": ["thu"], "from": "20:00", "until": "06:00", "timezone": "Asia/Kolkata"}),
        ]
    ),
    max_size=2,
    unique_by=lambda condition: condition[0],
)  # fmt: skip
RULES = st.lists(
    st.builds(
        lambda action, conditions: (("name", "r"), ("action", action), *conditions),
        st.sampled_from(["allow", "block", "mfa_required"]),
        CONDITIONS,
    ),
    max_size=3,
).map(tuple)
SCENES = st.builds(
    Scene,
    rules=RULES,
    provider=st.sampled_from(["none", "enrolled", "not enrolled", "away"]),
    fallback=st.sampled_from(Fallback),
    user=st.sampled_from(["ann", "Ann", "bob", "ann@corp"]),
    station=st.booleans(),
    service_type=st.sampled_from([None, 1, 2]),
    wireless=st.booleans(),
    hour=st.integers(0, 23),
    gone=st.booleans(),
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(SCENES)
def test_a_preview_agrees_with_the_live_decision(scene: Scene) -> None:
    """If a login was recorded in monitor mode, the preview has the verdict and the reason that the same login gets in
    enforce mode. This holds for any rules, for users that are enrolled, not enrolled or removed, and for a provider
    that is unreachable or missing."""
    trio.run(play, scene)


async def play(scene: Scene) -> None:
    """Record a login, request the preview, and log in."""
    with tempfile.TemporaryDirectory() as directory:
        async with running_store(Path(directory) / "s.db") as store:
            areas = Areas(store, SetClock())
            areas.clock.pass_by(scene.hour * 3600)
            await areas.prepare()
            async with trio.open_nursery() as nursery:
                await nursery.start(areas.second.run)
                with trio.fail_after(10):
                    await compare(areas, scene)
                nursery.cancel_scope.cancel()


async def compare(areas: Areas, scene: Scene) -> None:
    """Compare the preview with the decision of the real login."""
    await areas.add_user(areas.domain, "ann", b"hello")
    await areas.add_user(areas.domain, "bob", b"hello")
    if scene.provider != "none":
        areas.kinds["scripted"] = Scripted
        enrolled = "ann,bob" if scene.provider == "enrolled" else ""
        fields = {"enrolled": enrolled, "away": scene.provider == "away"}
        await areas.providers.set(areas.domain, "scripted", fields, 60)
    for rule in scene.rules:
        await areas.rules.add(
            areas.domain,
            RuleFields.model_validate({**dict(rule), "everyone": rule[1][1] != "mfa_required" and len(rule) == 2}),
        )
    listener = FakeListener(areas, await areas.client("192.0.2.1/32", product="Cisco ASA"), Answers())

    recorded = await listener.ready(pap(scene.user, "hello", scene.body))
    areas.journal.add(recorded)
    areas.journal.flush()
    await listener.answers.recorded.wait()
    await areas.devices.flush()
    if scene.gone:
        await areas.remove_user(areas.domain, scene.user.partition("@")[0])
    impact = await areas.preview.impact(areas.domain, days=1, fallback=scene.fallback)
    (found,) = impact.users

    await areas.domains.set_mode([areas.domain], Mode.ENFORCE, scene.fallback)
    live = await listener.decide(listener.login(pap(scene.user, "hello", scene.body)))
    assert (found.outcome.value, found.reason) == (live.applied.value, live.reason.value), (
        scene,
        areas.clock() // SECOND,
    )
    asked = Question(
        scene.user, areas.clock(), "192.0.2.1", nas_identifier=NAS.decode(), service_type=scene.service_type,
        station=STATION.decode() if scene.station else "",
        given={"ssid": "corp", "port": "radio 1", "address": "198.51.100.7"} if scene.wireless else {},
    )  # fmt: skip
    tested = await areas.app.preview.rule_test.run(areas.domain, asked)
    assert (tested.decision.applied, tested.decision.reason) == (live.applied, live.reason), scene
    monitored = recorded.answer.decision.applied.value
    assert impact.counts.denied >= (monitored == "accept" and live.applied.value == "reject" and not scene.gone)
