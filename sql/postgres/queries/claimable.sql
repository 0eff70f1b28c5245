-- What can be claimed now. Small: delayed, held back and finished rows are elsewhere.

-- name: queues.all
select key, handler, worker from queues order by key;

-- name: queues.add
insert into queues (handler, worker) values ($1, $2) on conflict do nothing;

-- name: queues.find
select key from queues where handler = $1 and worker = $2;

-- name: claimable.add
insert into claimable (queue_key, rank, task_key, run_key)
select u.queue_key, u.rank, u.task_key, u.run_key
from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[]) u (queue_key, rank, task_key, run_key)
on conflict do nothing;

-- name: claimable.remove
-- Found first and then taken by place, so that the order of the search is never the planner's.
delete from claimable
where ctid = any (array(
  select c.place
  from unnest($1::bigint[], $2::bigint[], $3::bigint[]) u (queue_key, rank, task_key)
  cross join lateral (
    select ctid as place
    from claimable
    where queue_key = u.queue_key and rank = u.rank and task_key = u.task_key
    offset 0
  ) c
));

-- name: claimable.peek
-- $1 queues or null for all, $2 limit
select c.queue_key, c.rank, c.task_key, c.run_key
from unnest(coalesce($1::bigint[], array(select key from queues))) q (key)
cross join lateral (
  select queue_key, rank, task_key, run_key
  from claimable
  where queue_key = q.key
  order by rank, task_key
  limit $2
) c
order by c.rank, c.task_key
limit $2;

-- name: claimable.peek_locked
-- The same for a writer: takes the lock of each run it meets and passes over the rows of a run that somebody else holds. Behind the
-- row: who wrote the run last, and who we are.
select c.queue_key, c.rank, c.task_key, c.run_key, c.writer, pg_current_xact_id()::text
from unnest(coalesce($1::bigint[], array(select key from queues))) q (key)
cross join lateral (
  select o.queue_key, o.rank, o.task_key, o.run_key, r.writer
  from (
    select queue_key, rank, task_key, run_key
    from claimable
    where queue_key = q.key
    order by rank, task_key
    offset 0
  ) o
  cross join lateral (
    select xmin::text as writer from runs where key = o.run_key for no key update skip locked
  ) r
  limit $2
) c
order by c.rank, c.task_key
limit $2;

-- name: claimable.of_run
-- For a process that works on one run alone. $1 run, $2 queues or null, $3 limit
select queue_key, rank, task_key, run_key
from claimable
where run_key = $1 and ($2::bigint[] is null or queue_key = any ($2))
order by rank, task_key
limit $3;

-- name: claimable.count
select count(*) as n from claimable;
