-- The facts of a login that login rules compare, so that a preview can decide the login again. realm and claimed are
-- null in a login of an earlier release. facts: further facts as JSON, if rules of the domain compare them.

alter table events add column ssid text not null default '';
alter table events add column port text not null default '';
alter table events add column realm text;
alter table events add column claimed smallint;
alter table events add column facts text;
