"""Step-ups: logins that wait until their person proves on a page that the login is theirs.

    stepup      values: a step-up, its code, and what its page shows
    addresses   comparison of the address of a browser with that of a station
    changes     wakes the logins that wait for a step-up
    limits      the limits of wrong codes
    openings    opens step-ups, but few of a person, and none during a pause
    mailing     brings the address of a page by mail
    service     the step-ups of all domains: for the provider `own`, and for the pages
    repo        SQL

The provider `own` opens a step-up for a login. Its code is in the address of the page, and a person can also type it at
`/mfa`. The page belongs to the first browser that sends the code by POST. The person proves a factor there. Then the
login continues:

    open --proof--> proven --login continues--> used
     |                |
     +----------------+--> denied ("This is not me"), unbound, wrong, over

A step-up is bound to its login in one of three ways (`mfa.fields.Binding`):

code      the page shows digits, and the user types them at the prompt of the device. Three wrong numbers end the login.
          This stops a forwarded link. It does not stop a phisher who also asks for the digits.
address   the browser has the address of the station, as the device sends it in a signed request.
unbound   nothing binds the proof to the login. A forwarded link lets another person in.

Everything is in the store, so that any node shows the page, and a restart ends no step-up. The digits are derived from
the id of the step-up with the master key, so the store does not contain them. Only a keyed hash of the code is stored.
"""
