-- One index of the sessions of a user, by the User-Name in the form for comparison, replaces two: that of the lists, and
-- that of limits of parallel sessions. Sessions from before step 0027 have no `user_key` yet.

update sessions set user_key = nullif(fold(trim(user_name)), '') where user_key is null and user_name is not null;
create index sessions_user_key on sessions (domain_id, user_key, id);
drop index sessions_over;
drop index sessions_user;
