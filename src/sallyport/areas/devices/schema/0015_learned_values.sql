-- The age of what was learned about a device. Times without an age are measured again.

alter table device_posture add column measured_at bigint not null default 0;
alter table device_posture add column gave_up_at bigint not null default 0;
alter table device_posture add column unanswered bigint not null default 0;
alter table device_posture add column answered_at bigint not null default 0;
alter table device_posture add column challenged_at bigint not null default 0;

-- What the MFA provider says about a login: null if nothing.

alter table events add column detail text;

update device_posture set
    challenged_at = (select last_seen from devices where id = device_id),
    answered_at = case when challenge_answers = 0 then 0 else (select last_seen from devices where id = device_id) end,
    unanswered = case when challenge_answers = 0 then challenges else 0 end
where challenges > 0;
