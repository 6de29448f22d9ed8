-- Answers are purged in the order of their ids. So each batch of logins writes one index less.

drop index answers_at;
