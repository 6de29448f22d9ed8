"""Lock-out: a user or a station with too many failures is refused for a while, in both modes, before a password is
checked.

    failures   counts by name within the window, and the locks: pure, time is passed in
    stations   the station that a request comes from, and the stations that many users share
    service    Lockouts: asked and informed by the login path; lists, unlocks, expires
    repo       the locks in the store

A user is a name in a domain, a station a Calling-Station-Id in it. Wrong passwords, unknown users and wrong codes
count. A success of the user, or of any user at the station, resets the count, except for wrong codes if no second
factor was approved: otherwise a login that needs no code would let an attacker with the password guess codes without
end. Wrong passwords count in authentic requests only. Wrong codes count in all requests: a code is checked only behind
a right password or with a valid State, and a spoofer has neither. Each guess counts once: a captured packet that is
sent again locks no user out, nor does a device that repeats one wrong password under new authenticators. The failure
that locks is an event with its usual reason and, in the same transaction, a lock in the store and an entry of the audit
trail. After it every login is refused at once, with a reason that neither counts nor prolongs the lock. A login that is
being decided at that moment is refused too, so that parallel guesses have no advantage.

The identity outside EAP is no user's name: it may be `anonymous` for every user, and an attacker may choose another for
each guess. It is neither counted nor locked nor forgiven; the inner name is, once it is known. Where another server has
the conversation, its Accept names the user; until then only the station counts.

A NAS is never locked as a station. A station is not locked if its name is one of the NAS's own names, if several users
have logged in by it lately, or if the NAS has no other station: a VPN gateway may send one fixed value for all users.

Counts are only in memory: a restart forgives at most nine failures, and only an admin restarts the service. Unknown
users are counted and locked apart, so that a flood of them evicts no user from the bounded tables. If there was no
failure for an hour, a login costs one look at `Lockouts.some`.
"""
