-- Named limits: what they are, what was granted under them, and which tasks they hold back.

-- name: limits.all
select name, definition, updated_at from limits order by name;

-- name: limits.save
insert into limits (name, definition, updated_at)
values ($1, $2, $3)
on conflict (name) do update set definition = excluded.definition, updated_at = excluded.updated_at
where limits.definition <> excluded.definition;

-- name: limits.lock
-- In the order of names. What is counted is counted in a later statement: one that waited for the lock sees what was before.
select l.name, l.definition, l.updated_at
from (select distinct name from unnest($1::text[]) u (name) order by name offset 0) n
cross join lateral (select name, definition, updated_at from limits where name = n.name for no key update) l;

-- name: limits.lock_free
-- Never waits: a limit that somebody holds is left out.
select l.name, l.definition, l.updated_at
from (select distinct name from unnest($1::text[]) u (name) order by name offset 0) n
cross join lateral (
  select name, definition, updated_at from limits where name = n.name for no key update skip locked
) l;

-- name: limits.read
select l.name, l.definition, l.updated_at
from unnest($1::text[]) u (name)
cross join lateral (select name, definition, updated_at from limits where name = u.name offset 0) l;

-- name: limits.use
-- $1 limits, $2 since, $3 now. Slots that are taken now, and what was spent after `since`.
select
  u.name, u.since,
  (select count(*) from limit_grants g where g.limit_name = u.name and g.held_until > $3) as slots,
  s.requests, s.tokens
from unnest($1::text[], $2::bigint[]) u (name, since)
cross join lateral (
  select coalesce(sum(g.requests), 0)::bigint as requests, coalesce(sum(g.tokens), 0)::bigint as tokens
  from limit_grants g
  where g.limit_name = u.name and g.spent_at > u.since
) s;

-- name: limits.grant
insert into limit_grants (limit_name, task_key, attempt, requests, tokens, held_until, spent_at)
select u.limit_name, u.task_key, u.attempt, u.requests, u.tokens, u.held_until, u.spent_at
from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
  u (limit_name, task_key, attempt, requests, tokens, held_until, spent_at);

-- name: limits.settle
-- A moment that was known before stays. Found first and then taken by place: whoever ends an attempt holds its run.
update limit_grants t
set requests = c.requests, tokens = c.tokens, held_until = c.held_until, spent_at = least(t.spent_at, c.spent_at)
from (
  select g.place, u.requests, u.tokens, u.held_until, u.spent_at
  from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
    u (limit_name, task_key, attempt, requests, tokens, held_until, spent_at)
  cross join lateral (
    select ctid as place
    from limit_grants
    where task_key = u.task_key and attempt = u.attempt and limit_name = u.limit_name
    offset 0
  ) g
) c
where t.ctid = c.place;

-- name: limits.free
update limit_grants set held_until = 0
where ctid = any (array(
  select g.place
  from unnest($1::bigint[], $2::bigint[]) u (task_key, attempt)
  cross join lateral (
    select ctid as place from limit_grants where task_key = u.task_key and attempt = u.attempt offset 0
  ) g
));

-- name: limits.aged
-- $1 limit, $2 now, $3 before: what was spent before counts in no window any more.
select count(*) as n from limit_grants where limit_name = $1 and spent_at <= $3 and held_until <= $2;

-- name: limits.age
delete from limit_grants where limit_name = $1 and spent_at <= $3 and held_until <= $2;

-- name: held.add
insert into held_tasks (place, queue_key, rank, task_key, run_key)
select u.place, u.queue_key, u.rank, u.task_key, u.run_key
from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
  u (place, queue_key, rank, task_key, run_key)
on conflict do nothing;

-- name: held.remove
delete from held_tasks
where ctid = any (array(
  select h.spot
  from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) u (place, queue_key, rank, task_key)
  cross join lateral (
    select ctid as spot
    from held_tasks
    where place = u.place and queue_key = u.queue_key and rank = u.rank and task_key = u.task_key
    offset 0
  ) h
));

-- name: held.limits
-- The limits that hold something back for these queues. $1 queues, or null for all.
select l.name
from limits l
where exists (
  select 1
  from unnest(coalesce($1::bigint[], array(select key from queues))) q (key)
  cross join lateral (
    select 1 from held_tasks where place = l.name and queue_key = q.key limit 1
  ) h)
order by l.name;

-- name: held.first
-- $1 place, $2 queues or null for all, $3 limit
select h.place, h.queue_key, h.rank, h.task_key, h.run_key
from unnest(coalesce($2::bigint[], array(select key from queues))) q (key)
cross join lateral (
  select place, queue_key, rank, task_key, run_key
  from held_tasks
  where place = $1 and queue_key = q.key
  order by rank, task_key
  limit $3
) h
order by h.rank, h.task_key
limit $3;

-- name: held.first_locked
-- The same for a writer: takes the lock of each run it meets and passes over the rows of a run that somebody else holds.
select h.place, h.queue_key, h.rank, h.task_key, h.run_key
from unnest(coalesce($2::bigint[], array(select key from queues))) q (key)
cross join lateral (
  select o.place, o.queue_key, o.rank, o.task_key, o.run_key
  from (
    select place, queue_key, rank, task_key, run_key
    from held_tasks
    where place = $1 and queue_key = q.key
    order by rank, task_key
    offset 0
  ) o
  cross join lateral (select 1 from runs where key = o.run_key for no key update skip locked) r
  limit $3
) h
order by h.rank, h.task_key
limit $3;

-- name: held.of_run
-- $1 run, $2 place, $3 limit
select place, queue_key, rank, task_key, run_key
from held_tasks
where run_key = $1 and place = $2
order by rank, task_key
limit $3;

-- name: held.counts
select place, count(*) as n from held_tasks group by place;
