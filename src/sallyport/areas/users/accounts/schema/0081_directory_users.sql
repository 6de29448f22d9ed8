-- Persons of a directory who have enrolled for codes are no local users: their type is Directory User.

update counters set value = value - (
    select count(*) from endpoint_users u
    where u.domain_id = counters.domain_id and u.source = 'directory' and lower(u.user_type) = 'local'
) where name = 'endpoint_users/user_type';
update endpoint_users set user_type = 'Directory User' where source = 'directory' and lower(user_type) = 'local';
