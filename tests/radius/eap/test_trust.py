"""Tests of the trust anchors of a domain."""

from sallyport.radius.eap.trust import MAX_ISSUERS_OCTETS, Trust, intermediates_of, kept_issuers, key_of
from tests.areas.authorities.made import MadeAuthority


def test_a_chain_is_completed_up_to_the_root() -> None:
    """The anchors above the last certificate of a chain follow, if their keys have signed it. Names are not enough."""
    root = MadeAuthority("Root")
    issuing = MadeAuthority("Issuing", root)
    below = MadeAuthority("Below", issuing)
    liar = MadeAuthority("Root")
    several = [liar.certificate, below.certificate, root.certificate, issuing.certificate]
    trust = Trust(several)
    assert trust.completed([below.certificate]) == (below.certificate, issuing.certificate, root.certificate)
    assert trust.completed([liar.certificate]) == (liar.certificate,)
    assert Trust([liar.certificate, issuing.certificate]).completed([issuing.certificate]) == (issuing.certificate,)


def test_certificates_below_another_one_of_the_bundle_are_intermediates() -> None:
    """The topmost certificates are trust anchors: a root, an issuing authority alone, and each of a circle."""
    root = MadeAuthority("Root")
    issuing = MadeAuthority("Issuing", root)
    below, alone = MadeAuthority("Below", issuing), MadeAuthority("Alone", MadeAuthority("Elsewhere"))
    bundle = [each.certificate for each in (below, alone, root, issuing)]
    assert intermediates_of(bundle) == {issuing.certificate, below.certificate}
    one = MadeAuthority("One")
    two = MadeAuthority("Two", one)
    assert not intermediates_of([two.certificate, MadeAuthority("One", two, key=one.key).certificate])


def test_anchors_that_sign_each_other_end() -> None:
    """A circle of authorities has no root. Each appears once."""
    one = MadeAuthority("One")
    two = MadeAuthority("Two", one)
    back = MadeAuthority("One", two, key=one.key)
    chain = Trust([two.certificate, back.certificate]).completed([two.certificate])
    assert chain == (two.certificate, back.certificate, two.certificate)[: len(chain)]
    assert len(chain) <= 3


def test_long_chains_are_not_kept_with_a_session() -> None:
    """The memory of resumable sessions is limited: a chain that is too long needs a full login each time."""
    made = MadeAuthority("One").certificate
    assert kept_issuers([made, made]) == (made,)
    assert kept_issuers([made] * (MAX_ISSUERS_OCTETS // 300)) is None
    assert len(key_of(made)) == 64


def test_the_anchor_of_a_chain_is_the_nearest_one() -> None:
    """Both the root and the issuing authority may be anchors. Without the issuing one, it is the last certificate."""
    root = MadeAuthority("Root")
    issuing = MadeAuthority("Issuing", root)
    chain = [MadeAuthority("Ann", issuing).certificate, issuing.certificate, root.certificate]
    keys = [key_of(each) for each in chain]
    assert Trust([issuing.certificate, root.certificate]).anchor_of(chain) == keys[1]
    assert Trust([root.certificate]).anchor_of(chain) == keys[2]
