"""Request and response bodies of /ad/...Role(s)."""

from typing import Annotated, Final, Self

from pydantic import AfterValidator, Field, model_validator

from sallyport.areas.clients.bodies import Product
from sallyport.areas.policy.roles.role import MAX_NAME, MAX_SET_OCTETS, MAX_SETS, ReplySet, RoleSource
from sallyport.areas.policy.roles.templates import TEMPLATES
from sallyport.areas.policy.rules.bodies import VLAN, Replies, ReplyAttribute, replies
from sallyport.base.errors import Invalid
from sallyport.base.model import Model, SentModel
from sallyport.base.tags import MAX_TAG, canonical_tag
from sallyport.base.validation import unfit
from sallyport.web.bodies import DomainId, Flag, InDomain, Name, Paged, PlainText, Text, TotalCount

ROLE: Final = "Name of the role. Case is ignored."
PRODUCT: Final = "Product of the NAS that gets the set, as ListDevices names it."
TAG: Final = (
    "Tag KEY=VALUE of the devices that get the set, whatever their product. A value with / or # is a hierarchy, which "
    "its beginning selects. Empty: none."
)
REPLIES: Final = f"Attributes for the Access-Accept. Together with the VLAN, they have at most {MAX_SET_OCTETS} octets."
RoleName = Annotated[Name, Field(max_length=MAX_NAME), AfterValidator(str.strip)]


def _tag(value: str) -> str:
    try:
        return canonical_tag(value, "tag") if value.strip() else ""
    except Invalid as error:
        raise unfit(error.fields[0].message) from None


class _Selector(SentModel):
    """What selects one of the sets of a role."""

    product: Product = Field(default="", description=f"{PRODUCT} Empty: the default set, or the set of the tag.")
    tag: Annotated[str, Field(max_length=MAX_TAG), AfterValidator(_tag)] = Field(default="", description=TAG)

    @property
    def key(self) -> tuple[str, str]:
        """The product and the tag of the set, as `ReplySet.key`."""
        return ReplySet(self.product, self.tag).key

    @model_validator(mode="after")
    def _has_one_key(self) -> Self:
        if self.product and self.tag:
            raise unfit("give product or tag, not both", "product", "tag")
        return self


class OneSet(_Selector, InDomain):
    """The name of a role, and what selects one of its sets."""

    role: RoleName = Field(description=ROLE)


class _SetFields(SentModel):
    vlan: Annotated[PlainText, Field(max_length=64)] = Field(default="", description=VLAN)
    replyAttributes: Replies = Field(default=[], description=REPLIES)


class SetOfRole(_SetFields, _Selector):
    """A set of a role in a file."""

    def reply_set(self) -> ReplySet:
        """Return the set, not encoded."""
        return ReplySet(self.product, self.tag, self.vlan.strip(), replies(self.replyAttributes))


class WholeRole(SentModel):
    """A role with all its sets, in a file."""

    role: RoleName = Field(description=ROLE)
    sets: list[SetOfRole] = Field(
        default_factory=list, max_length=MAX_SETS, description="Sets of reply attributes, one for each product or tag."
    )


class SetRole(_SetFields, OneSet):
    """Request body of the operation `SetRole`."""

    template: Flag = Field(
        default=False,
        description="Add the attribute in which the product expects the name of a role, with the role's name.",
    )

    @model_validator(mode="after")
    def _has_a_template(self) -> "SetRole":
        if self.template and self.product not in TEMPLATES:
            raise unfit(f"template needs a product that has one: {', '.join(TEMPLATES)}", "product")
        return self


class RemoveRole(OneSet):
    """Request body of the operation `RemoveRole`."""

    product: Product = Field(
        default="",
        description="Product whose set is removed. Without product and tag, the whole role is removed, with all its "
        "sets.",
    )


class ShowRole(InDomain):
    """Request body of the operation `ShowRole`."""

    role: RoleName = Field(description=ROLE)


class ListRoles(InDomain, Paged):
    """Request body of the operation `ListRoles`."""

    search: Text = Field(
        default="",
        description="Text that the name must contain; case is ignored. If it is empty, all roles are listed.",
    )


class SetEntry(Model):
    """A set of reply attributes of a role."""

    product: str = Field(description="Product of the NAS that gets the set; empty for all products.")
    tag: str = Field(description="Tag of the devices that get the set; empty if no tag selects the set.")
    vlan: str = Field(description=VLAN)
    replyAttributes: list[ReplyAttribute] = Field(description=REPLIES)
    source: RoleSource = Field(description="Why a NAS gets the set: its `tag`, its `product`, or `default`.")
    attributes: list[str] = Field(description="Attributes that are sent, such as `Filter-Id = staff`.")


class RoleEntry(Model):
    """A role."""

    role: str = Field(description="Name of the role.")
    domainId: DomainId
    sets: list[SetEntry] = Field(description="Sets of reply attributes, the default set first.")
    usedBy: list[str] = Field(description="What uses the role, such as `rule 3 printers`.")


class RoleList(Model):
    """Response body of the operation `ListRoles`."""

    roles: list[RoleEntry] = Field(description="Roles of the page, ordered by name.")
    totalCount: TotalCount
