-- The record of every committed change.

-- name: events.page
-- Only below the oldest transaction under way: nothing can appear there any more. $1 xid and $2 seq after, $3 types or null, $4 limit
select e.xid::text || '.' || e.seq as cursor, r.id as run_id, t.id as task_run_id, t.task_id, t.map_index, e.type, e.at, e.data
from (
  select xid, seq, run_key, task_key, type, at, data
  from events
  where (xid, seq) > ($1::text::xid8, $2::bigint)
    and xid < pg_snapshot_xmin(pg_current_snapshot())
    and ($3::text[] is null or type = any ($3))
  order by xid, seq
  limit $4
) e
left join lateral (select id from runs where key = e.run_key offset 0) r on true
left join lateral (select id, task_id, map_index from task_runs where key = e.task_key offset 0) t on true
order by e.xid, e.seq;

-- name: events.page_of_run
-- Written under the run's lock, so numbered in the order of their commits. $1 seq after, $2 types or null, $3 limit, $4 run
select e.xid::text || '.' || e.seq as cursor, r.id as run_id, t.id as task_run_id, t.task_id, t.map_index, e.type, e.at, e.data
from (
  select xid, seq, run_key, task_key, type, at, data
  from events
  where run_key = $4 and seq > $1 and ($2::text[] is null or type = any ($2))
  order by seq
  limit $3
) e
left join lateral (select id from runs where key = e.run_key offset 0) r on true
left join lateral (select id, task_id, map_index from task_runs where key = e.task_key offset 0) t on true
order by e.seq;

-- name: events.is_expired
-- Something after the cursor was pruned, and nothing before it is left.
select
  exists (select 1 from pruned_events where (xid, seq) > ($1::text::xid8, $2::bigint))
  and not exists (select 1 from events where (xid, seq) <= ($1::text::xid8, $2::bigint)) as is_expired;

-- name: events.newest
select xid::text || '.' || seq as cursor
from events
where xid < pg_snapshot_xmin(pg_current_snapshot())
order by xid desc, seq desc
limit 1;

-- name: events.estimate
select coalesce(
  (select seq from events order by xid desc, seq desc limit 1) - (select seq from events order by xid, seq limit 1) + 1, 0
) as n;
