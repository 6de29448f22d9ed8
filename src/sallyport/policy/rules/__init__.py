"""Login rules of a domain: who is let in, who is asked for a second factor, who is not let in (/ad/...LoginRule(s)).

    rule         a rule as the service and the store keep it
    bodies       a rule as the interface spells it
    match        the rules of a domain against the facts of a login: no I/O, some microseconds
    translation  what bodies name as numbers and octets: Service-Type, medium, clients, reply attributes
    service      all rules in memory, replaced as a whole after each change, so that it holds for the very next request

A scope list that is given must hold for the login, by any of its entries; an empty one is no condition. Rules that
name users stand before those that name groups, these before those that name OUs, these before the rest; then the
smaller priority, then the smaller id. The first rule that matches decides.

**What a login does not tell is no exemption**: otherwise whoever leaves Calling-Station-Id out would escape the rule
about it. Where a condition cannot be judged (an absent attribute, groups that could not be read), the rule *may*
match, and the login is judged as if it did wherever that is stricter:

- an `allow` rule that may match does not;
- a `block` or `mfa_required` rule that may match sets the least that is demanded. The rules after it are still read,
  since a rule that surely matches may demand more: leaving an attribute out must not turn a block into a prompt;
- its reply attributes are not given, since they are for those who surely are meant.
"""
