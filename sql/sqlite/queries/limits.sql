-- Named limits: what they are, what was granted under them, and which tasks they hold back.

-- name: limits.all
select name, definition, updated_at from limits order by name;

-- name: limits.save
insert into limits (name, definition, updated_at)
values (?1, ?2, ?3)
on conflict (name) do update set definition = excluded.definition, updated_at = excluded.updated_at
where limits.definition <> excluded.definition;

-- name: limits.lock
-- There is one writer: to read is to hold.
select name, definition, updated_at from limits where name in (select value from json_each(?1)) order by name;

-- name: limits.use
-- ?1 [[limit, since]], ?2 now. Slots that are taken now, and what was spent after `since`.
select
  j.value ->> 0 as name, j.value ->> 1 as since,
  (select count(*) from limit_grants g where g.limit_name = j.value ->> 0 and g.held_until > ?2) as slots,
  (select coalesce(sum(g.requests), 0) from limit_grants g
    where g.limit_name = j.value ->> 0 and g.spent_at > j.value ->> 1) as requests,
  (select coalesce(sum(g.tokens), 0) from limit_grants g
    where g.limit_name = j.value ->> 0 and g.spent_at > j.value ->> 1) as tokens
from json_each(?1) j;

-- name: limits.grant
insert into limit_grants (limit_name, task_key, attempt, requests, tokens, held_until, spent_at)
select
  j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3, j.value ->> 4, j.value ->> 5, j.value ->> 6
from json_each(?1) j;

-- name: limits.settle
-- A moment that was known before stays.
update limit_grants
set requests = j.value ->> 3, tokens = j.value ->> 4, held_until = j.value ->> 5,
  spent_at = min(spent_at, j.value ->> 6)
from json_each(?1) j
where limit_grants.task_key = j.value ->> 1 and limit_grants.attempt = j.value ->> 2
  and limit_grants.limit_name = j.value ->> 0;

-- name: limits.free
update limit_grants set held_until = 0
where (task_key, attempt) in (select j.value ->> 0, j.value ->> 1 from json_each(?1) j);

-- name: limits.aged
-- ?1 limit, ?2 now, ?3 before: what was spent before counts in no window any more.
select count(*) as n from limit_grants where limit_name = ?1 and spent_at <= ?3 and held_until <= ?2;

-- name: limits.age
delete from limit_grants where limit_name = ?1 and spent_at <= ?3 and held_until <= ?2;

-- name: held.add
insert or ignore into held_tasks (place, queue_key, rank, task_key, run_key)
select j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3, j.value ->> 4
from json_each(?1) j;

-- name: held.remove
delete from held_tasks
where (place, queue_key, rank, task_key) in (
  select j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3 from json_each(?1) j);

-- name: held.limits
-- The limits that hold something back for these queues. ?1 queues as JSON, or null for all.
select l.name
from limits l
where exists (
  select 1
  from json_each(coalesce(?1, (select json_group_array(key) from queues))) q
  where exists (select 1 from held_tasks h where h.place = l.name and h.queue_key = q.value))
order by l.name;

-- name: held.first
-- ?1 place, ?2 queue, ?3 limit
select place, queue_key, rank, task_key, run_key
from held_tasks
where place = ?1 and queue_key = ?2
order by rank, task_key
limit ?3;

-- name: held.of_run
-- ?1 run, ?2 place, ?3 limit
select place, queue_key, rank, task_key, run_key
from held_tasks
where run_key = ?1 and place = ?2
order by rank, task_key
limit ?3;

-- name: held.counts
select place, count(*) as n from held_tasks group by place;
