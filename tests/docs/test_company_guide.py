"""The policy of docs/guides/company.md decides real logins as the page says."""

from pathlib import Path

from sallyport.radius.attributes import VENDOR_SPECIFIC
from tests.docs.commands import Done, Walk, problem, walked

PASSWORD = "a long word of the test"
ACCEPT, REJECT = 2, 3
TUNNEL_PASSWORD, VLAN = 69, 81
WIRELESS, ETHERNET = (19).to_bytes(4), (15).to_bytes(4)
PRINTER, LABELS, GUEST = "02005e005301", "02005e005302", "02005e0053ff"
SITES = {"wlc-berlin": 11, "switch-berlin": 12, "vpn-berlin": 13, "ap-munich": 21, "ap-vienna": 31}
WALK = Walk(
    "docs/guides/company.md",
    before=[f"for each in anna carl; do echo '{PASSWORD}' > $each.password; done; echo 'a key of 63' > label.psk"],
    replace={"192.0.2.": "127.8.2."},
)


def answer(done: Done, client: str, user: str, ssid: str = "", *, station: str = "") -> tuple[int, dict[int, bytes]]:
    """Log in at a device of the page. Return the code of the answer, and the first value of each attribute. station:
    the address of a station that asks for admission by its address; `user` is then the same address."""
    printed = done.output(f"sallyport client add {client} ").splitlines()
    secret = next(line for line in printed if line and " " not in line)
    assert done.service is not None
    extra = {"NAS_PORT_TYPE": WIRELESS if ssid else ETHERNET}
    if ssid:
        extra["CALLED_STATION_ID"] = f"02-00-5E-00-53-77:{ssid}".encode()
    if station:
        extra["CALLING_STATION_ID"] = station.encode()
    with done.service.radius(secret, source=f"127.8.2.{SITES[client]}") as nas:
        return nas.exchange(nas.packet(user, user if station else PASSWORD, **extra))


def test_the_policy_of_the_page(tmp_path: Path, program: Path) -> None:
    """Each kind of person and device gets the answer of the policy, with the attributes of the product."""
    with walked(WALK, tmp_path, program) as done:
        assert problem(WALK, done) == ""
        tests = [text for each, text in zip(done.commands, done.printed, strict=False) if " rule test " in each.text]
        for text, rule in zip(tests, ("staff-vpn", "no-vpn", "contractors-wifi", "others"), strict=True):
            assert rule in text.partition("decides")[0].splitlines()[-1]
        assert "Fortinet-Group-Name = vpn-staff" in tests[0]
        berlin, munich, vienna = (
            answer(done, client, "anna", "Tools")[1] for client in ("wlc-berlin", "ap-munich", "ap-vienna")
        )
        assert [each[VLAN] for each in (berlin, munich, vienna)] == [b"20", b"20", b"120"]
        assert berlin[VENDOR_SPECIFIC].endswith(b"staff") and VENDOR_SPECIFIC not in munich
        assert answer(done, "vpn-berlin", "anna")[1][VENDOR_SPECIFIC].endswith(b"vpn-staff")
        code, sent = answer(done, "switch-berlin", PRINTER, station=PRINTER)
        assert (code, sent[VLAN]) == (ACCEPT, b"40")
        sent = answer(done, "ap-vienna", LABELS, "Tools-Guest", station=LABELS)[1]
        assert sent[VLAN] == b"40" and TUNNEL_PASSWORD in sent
        code, sent = answer(done, "ap-munich", GUEST, "Tools-Guest", station=GUEST)
        assert (code, sent[VLAN]) == (ACCEPT, b"99")
        assert answer(done, "wlc-berlin", GUEST, "Tools-Guest", station=GUEST)[1][VENDOR_SPECIFIC].endswith(b"guest")
        assert answer(done, "ap-munich", GUEST, "Tools", station=GUEST)[0] == REJECT
        assert answer(done, "switch-berlin", GUEST, station=GUEST)[0] == REJECT
