"""The kinds of first factors that ask somebody else, in an explicit list."""

from collections.abc import Mapping
from typing import Final

from sallyport.domains.model import FirstFactor
from sallyport.login.first.ldap.checker import Ldap
from sallyport.login.first.model import Checker
from sallyport.login.first.upstream.checker import Upstream

KINDS: Final[Mapping[FirstFactor, type[Checker]]] = {FirstFactor.LDAP: Ldap, FirstFactor.RADIUS: Upstream}
