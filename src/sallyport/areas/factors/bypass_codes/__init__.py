"""Bypass codes: codes that an operator makes for a person without another factor, such as after the loss of a phone.

    code      values: a bypass code, what a request makes, the form of a code
    service   makes, checks, lists and removes codes
    repo      SQL
    bodies, operations   the operations for operators

A code has eight digits, so that it can also follow a password, like a code of an app. Its first digit is the number of
the code among the codes of the person, and the other digits are random. So a typed code is compared with one stored
code only, and costs at most one slow hash.

Codes cannot be tried out. Each try is stored before the code is compared, and MAX_WRONG wrong tries end a code, on all
nodes and through restarts. An attacker who knows the password of a person with ten codes finds one with a chance of one
in 100,000. Slow hashes run in worker threads, two at a time, and waiting tenants take turns.

A code may be used once or several times, until a time. A use is counted in the transaction that accepts the code, so
that two nodes accept a single-use code once. New codes replace all former codes of the person. The store has the
Argon2id hash of a code, sealed under the master key. A restore deletes all codes, because they may have been used after
the backup.

A bypass code can be passed on and read over a shoulder, so it is the weakest factor. It satisfies no login rule that
demands a stronger one.
"""
