-- The list of a domain's presentation requests, newest first.

create index presentation_requests_domain on presentation_requests (domain_id, id);
