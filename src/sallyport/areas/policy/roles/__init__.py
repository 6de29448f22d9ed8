"""Roles of a domain: named sets of reply attributes, so that a login rule says `role staff` once for all products.

    role       a role in memory and in the store, and the choice of its set for a NAS
    templates  the attributes in which products expect the name of a role
    service    keeps the roles of all domains in memory; a change applies to the next request
    repo       SQL

A role has a set for each product that needs attributes of its own, and a default set for all other products. The set is
chosen in this order, and the event of the login names the choice:

    tag      the NAS has the tag of a set; if it has the tags of several sets, the longest tag decides
    product  the product of the NAS, as the inventory shows it, or else the product that is configured for its client
    default  the default set
    none     the role has no set for this NAS, and nothing is sent

The sets are encoded when they are stored, as the reply attributes of rules are. So a stored role sends the same octets
even after the RADIUS dictionary has changed. An attribute of the rule itself replaces the attributes of the role that
have the same type. A rule that matches only because a fact is missing gives no role.

A role is no security boundary between products: a NAS that lies about its product gets another set of the same role.
"""
