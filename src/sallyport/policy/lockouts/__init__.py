"""Lock-out: who fails too often is refused for a while, in both modes, before anybody's password is looked at.

    failures   counts by name within the window, and the locks: pure, time is passed in
    stations   which station a request comes from, and which of them many users share
    service    Lockouts: what the login path asks and tells; lists, unlocks, forgets what is over
    repo       the locks in the store

A user is a name in a domain, a station a Calling-Station-Id in it. Wrong passwords, names that nobody has and wrong
codes count; a success of the user, or of somebody at the station, sets them back to none, but for wrong codes where no
second factor was approved: a login that needs no code would forgive whoever has the password each guess at one. Wrong
passwords count in authentic requests only, wrong codes in all: a code is checked behind a right password or with a
valid State, and a spoofer has neither. Each guess counts once: a captured packet that is sent again locks no user out,
nor does a device that repeats one wrong password under new authenticators. The failure that locks is an event with its
usual reason and, in the same transaction, a lock in the store and an entry of the audit trail; then every login is
refused at once with a reason of its own, which neither counts nor prolongs the lock. A login that was being decided
meanwhile is refused too, so that guesses that come together are worth no more than those that come one by one.

What a client calls itself outside EAP is no user's name: it may be `anonymous` for everybody, and whoever guesses may
choose another each time. It is not counted, nor locked, nor forgiven; the name inside is, once it is known. Where
another server has the conversation, that is when its Accept names the user; until then the station alone counts.

A station is never the NAS. It is not locked where it has one of the NAS's own names, where several users have got in
by it lately, or where the NAS has no other station: a VPN gateway may send one fixed value for everybody.

Counts are in memory alone: a restart forgives at most nine failures, and nobody but an admin restarts the service.
Names that nobody has are counted and locked apart, so that a flood of them pushes no user out of the bounded tables.
While nobody has failed for an hour, a login pays for one look at `Lockouts.some`.
"""
