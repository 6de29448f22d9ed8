-- The attributes of a login's answer, as text: null if the answer had none that may be shown.

alter table events add column attributes text;
