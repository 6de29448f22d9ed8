"""The HTTP operations of enrolment: /api/v1/endpointUsers/...Totp."""

from sallyport.base.clock import iso
from sallyport.base.errors import Invalid
from sallyport.endpoints.model import ConfirmTotp, EnrolTotp, TotpEnrolled
from sallyport.endpoints.qr import QrImages
from sallyport.endpoints.totp import LinkTo, OneTimeSeeds
from sallyport.web.operation import Done, Operations
from sallyport.web.scope import OPERATORS, Caller, Gate


def operations(seeds: OneTimeSeeds, link_to: LinkTo, gate: Gate) -> Operations:
    """The operations of this slice."""
    users, images = Operations("Endpoint users", gate), QrImages()

    @users.post("/api/v1/endpointUsers/enrolTotp", roles=OPERATORS)
    async def enrol_totp(body: EnrolTotp, caller: Caller) -> TotpEnrolled:
        """Make a one-time-password seed for a user. It counts after its first right code; until then, the one before.

        The link is in this answer only. It opens a page for the user, which takes the first code.
        """
        made, link = await seeds.enrol(body.domainId, body.which)
        return TotpEnrolled(
            message="the seed counts after its first right code",
            userId=made.person.id,
            otpauth=made.otpauth,
            seed=made.seed,
            qrCode=await images.data_uri(made.otpauth),
            link=link_to(link),
            expiresAt=iso(made.expires_at),
        )

    @users.post("/api/v1/endpointUsers/confirmTotp", roles=OPERATORS)
    async def confirm_totp(body: ConfirmTotp, caller: Caller) -> Done:
        """Confirm a user's new seed with its first code. The fifth wrong code ends the enrolment."""
        checked = await seeds.confirm(body.domainId, body.which, body.code)
        if not checked.right:
            raise Invalid.about("wrong code" if checked.left else "wrong code; the enrolment has ended", "code")
        return Done(message="the seed counts from now on")

    return users
