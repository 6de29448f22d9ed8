"""Links with which people add their first factor.

    link        values: a link, a person without a factor, the progress of mails to a group
    people_repo SQL: the people of a domain or a group that have no factor, with their mail addresses
    repo        SQL of links
    challenge   links that a challenge shows to people without a factor
    service     makes, opens and ends links; queues mails to the people of a group
    mailing     sends the queued mails
    bodies, operations   the operations for operators

A link contains a secret of 32 random octets, of which the store has only the hash. It expires, and it works once. To
open a link changes nothing, because mail scanners and previews open links too. The first POST binds the link to the
browser. Then the person types the password. Five wrong passwords end the link, and each counts for the lock-outs too.

A person has at most one link: a new one replaces the former one. The link of a queued mail is made when the mail is
sent, so that the store never contains its secret. If the service stops between the two, the mail is sent again with a
new link.
"""
