-- login_rules.provider: the MFA provider that the rule names; empty if it names none.

alter table login_rules add column provider text not null default '';
