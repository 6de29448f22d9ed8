"""Login rules of a domain: they allow a login, require a second factor, or block it (/ad/...LoginRule(s)).

    rule         a rule as the service and the store keep it
    bodies       a rule as the interface spells it
    match        the rules of a domain against the facts of a login: no I/O, some microseconds
    translation  names in bodies as numbers and octets: Service-Type, medium, clients, reply attributes
    service      all rules in memory, replaced as a whole after each change, so that it applies to the next request

Each scope list that is given must match the login by one of its entries; an empty list is no condition. Rules with
users are read before rules with groups, these before rules with OUs, these before the others; then by priority, then by
id. The first rule that matches decides.

**A missing fact is no exemption**: otherwise a device could leave Calling-Station-Id out to escape the rule about it.
If a condition cannot be judged (an absent attribute, groups that could not be read), the rule *may* match, and the
login is judged as if it did wherever that is stricter:

- an `allow` rule that may match does not;
- a `block` or `mfa_required` rule that may match sets the minimum. The rules after it are still read, since a rule that
  surely matches may demand more: leaving an attribute out must not turn a block into a prompt;
- its reply attributes are not sent: they are for logins that surely match.
"""
