-- The record of every committed change.

-- name: events.page
-- ?1 after, ?2 types as JSON or null, ?3 limit
select cast(e.seq as text) as cursor, r.id as run_id, t.id as task_run_id, t.task_id, t.map_index, e.type, e.at, e.data
from events e
left join runs r on r.key = e.run_key
left join task_runs t on t.key = e.task_key
where e.seq > ?1 and (?2 is null or e.type in (select value from json_each(?2)))
order by e.seq
limit ?3;

-- name: events.page_of_run
-- ?1 after, ?2 types as JSON or null, ?3 limit, ?4 run
select cast(e.seq as text) as cursor, r.id as run_id, t.id as task_run_id, t.task_id, t.map_index, e.type, e.at, e.data
from events e indexed by events_by_run
left join runs r on r.key = e.run_key
left join task_runs t on t.key = e.task_key
where e.run_key = ?4 and e.seq > ?1 and (?2 is null or e.type in (select value from json_each(?2)))
order by e.seq
limit ?3;

-- name: events.is_expired
-- Something after the cursor was pruned, and nothing before it is left.
select coalesce((select min(seq) from events), 0) - 1 > ?1 as is_expired;

-- name: events.newest
select cast(max(seq) as text) as cursor from events;

-- name: events.estimate
select coalesce((select max(seq) from events) - (select min(seq) from events) + 1, 0) as n;
