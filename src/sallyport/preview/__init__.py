"""What enforcing would do to a domain: its recorded logins, decided once more by the function that decides live ones.

    periods  when the rules' times of day hold, so that logins of a month can be taken together
    repo     recorded logins that the rules cannot tell apart, counted by the store
    service  login rules, enrolment and `decide` over them; who and what fares worst, by name

**What is taken as it was recorded**: that the first factor was right (other names than those who passed it are noise
that anybody can make), from where, on which kind of service and when. **What is taken as it is now**: rules, fallback,
RADIUS clients, the products of devices, the provider, enrolments, and whether a local user still exists. That is what
the next login of the same person will meet.

**Nobody is disturbed.** What is known of enrolments is used; beyond it the provider is asked about a bounded number of
users within some seconds, those who log in most first. The rest is `unknown`, and said to be. The store counts in
slices of its own search connections, and what is left to do in Python lets the event loop go every two milliseconds, so
that logins do not wait for a preview of millions of events.
"""
