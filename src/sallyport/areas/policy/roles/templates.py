"""The attribute in which a product expects the name of a role, and the object that the product needs of this name.

The statements come from the vendors' documentation, and from the modules of PacketFence for these products.
"""

from dataclasses import dataclass
from typing import Final

from sallyport.areas.policy.rules.rule import Reply


@dataclass(frozen=True, slots=True)
class Template:
    """The attributes of a role for a product.

    attribute: the name of the attribute with the role's name; empty if the product has none. takes_vlan: whether the
    product takes a VLAN by the attributes of RFC 3580. needs: the object with the role's name that the product needs.
    suffix: a text after the role's name in the attribute.
    """

    product: str
    attribute: str = ""
    takes_vlan: bool = True
    needs: str = ""
    suffix: str = ""

    def replies(self, role: str) -> tuple[Reply, ...]:
        """Return the attributes for a role of this name."""
        return (Reply(self.attribute, role + self.suffix),) if self.attribute else ()


TEMPLATES: Final = {
    each.product: each
    for each in (
        Template("Aruba Wireless", "Aruba-User-Role", needs="a user role"),
        Template("Cisco ASA", "ASA-Group-Policy", takes_vlan=False, needs="a group policy"),
        Template("Cisco Catalyst 9800", "Airespace-ACL-Name", needs="an ACL"),
        Template("Cisco IOS", "Filter-Id", needs="an ACL", suffix=".in"),
        Template("Cisco Meraki", "Filter-Id", needs="a group policy; the SSID must use Filter-Id for group policies"),
        Template("Cisco WLC", "Airespace-ACL-Name", needs="an ACL"),
        Template(
            "Fortinet FortiGate", "Fortinet-Group-Name", takes_vlan=False, needs="a user group that matches this name"
        ),
        Template("HP ProCurve", "HP-User-Role", needs="a user role"),
        Template("Huawei", "Filter-Id", needs="an ACL number or a user group"),
        Template("Juniper EX", "Filter-Id", needs="a firewall filter"),
        Template("MikroTik RouterOS", "Mikrotik-Group", needs="a user group or a user profile"),
        Template("Palo Alto PAN-OS", "PaloAlto-User-Group", takes_vlan=False, needs="a group in the allow list"),
        Template("Ruckus", "Ruckus-User-Groups", needs="a role with this group attribute"),
        Template("Ubiquiti UniFi"),
        Template("hostapd"),
        Template("strongSwan", "Class", takes_vlan=False, needs="a group in `rightgroups`, with class_group = yes"),
    )
}
"""The templates by product."""
