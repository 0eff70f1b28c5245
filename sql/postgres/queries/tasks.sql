-- Task runs and the edges between them. `save` and `insert` are built from the columns.
-- Rows are looked up from a side table one by one (`offset 0` keeps it so), whatever the planner believes about its size.
-- Tasks of a run are found by `run_key between $1 and $1`: after `run_key = $1` the order by key alone would do, and a planner that
-- has seen few runs, or large ones, would then walk the primary key over the tasks of everybody.

-- define: task_row
  key, id, run_key, task_id, map_index, status, waiting_for, reason, undecided, is_plain, is_finally,
  is_tolerated, priority, queue_key, deps_remaining, deps_ok, attempt, attempts_spent, losses, releases,
  unstarted, generation, version, in_queue, not_before, lease_id, leased_by, lease_expires_at, lease_ms,
  claim_id, deadline_at, started_at, finished_at, timeout_ms, retry, progress, message, checkpoint, gate,
  question, question_id, answers, output_attempt, error, usage, spec, map_key, map_size, map_failed, map_slots, limits

-- name: tasks.by_keys
select t.*
from unnest($1::bigint[]) u (key)
cross join lateral (select :task_row: from task_runs where key = u.key offset 0) t;

-- name: tasks.by_id
select :task_row: from task_runs where id = $1;

-- name: tasks.keys_of
select u.id, t.key
from unnest($1::text[]) u (id)
cross join lateral (select key from task_runs where id = u.id offset 0) t;

-- name: tasks.by_task_ids
-- Items have the name of their map; they are asked for with `tasks.items`.
select :task_row:
from task_runs
where run_key between $1 and $1 and map_key is null and task_id = any ($2::text[])
order by run_key, key;

-- name: tasks.of_run
select :task_row: from task_runs where run_key between $1 and $1 and key > $2 order by run_key, key limit $3;

-- name: tasks.nodes_of
select :task_row:
from task_runs
where run_key between $1 and $1 and map_key is null and key > $2
order by run_key, key
limit $3;

-- name: tasks.items
select :task_row:
from task_runs
where map_key between $1 and $1 and map_index >= $2
order by map_key, map_index
limit $3;

-- name: tasks.held
select t.*
from (
  select task_key
  from task_marks
  where kind = 'held' and map_key between $1 and $1
  order by map_key, task_key
  limit $2
) m
cross join lateral (select :task_row: from task_runs where key = m.task_key offset 0) t;

-- name: tasks.children_of
-- Ordered by child, so that a cursor can go on after the last one it has seen.
select e.parent, e.child
from unnest($1::bigint[]) u (key)
cross join lateral (
  select parent, child from edges where parent = u.key and child > $2 order by child limit $3
) e
order by e.child, e.parent
limit $3;

-- name: tasks.children_rows
-- The rows behind the same page, sent along with it when the page is small.
select t.*
from (
  select distinct e.child
  from unnest($1::bigint[]) u (key)
  cross join lateral (
    select child from edges where parent = u.key and child > $2 order by child limit $3
  ) e
  order by e.child
  limit $3
) c
cross join lateral (select :task_row: from task_runs where key = c.child offset 0) t;

-- name: tasks.priorities_below
select distinct t.priority
from (select child from edges where parent = $1 offset 0) e
cross join lateral (select priority from task_runs where key = e.child offset 0) t
limit $2;

-- name: tasks.parents_of
select e.parent, e.child
from unnest($1::bigint[]) u (key)
cross join lateral (select parent, child from edges where child = u.key offset 0) e
order by e.child, e.parent;

-- name: task_runs.reserve
-- Keys for new rows, in order, with who we are.
select string_agg(nextval('task_runs_key_seq')::text, ','), pg_current_xact_id()::text from generate_series(1, $1::integer);

-- name: tasks.link
insert into edges (parent, child)
select u.parent, u.child
from unnest($1::bigint[], $2::bigint[]) u (parent, child);

-- name: tasks.unfinished
select :task_row:
from task_runs
where run_key between $1 and $1 and key > $2 and status not in ('SUCCESS', 'FAILED', 'CANCELLED', 'SKIPPED')
order by run_key, key
limit $3;

-- name: tasks.ready
select t.*
from (
  select task_key from task_marks where kind = 'ready' and run_key = $1 order by rank, task_key limit $2
) m
cross join lateral (select :task_row: from task_runs where key = m.task_key offset 0) t;

-- name: tasks.undecided
select t.*
from (
  select task_key from task_marks where kind = 'undecided' order by task_key limit $1
) m
cross join lateral (select :task_row: from task_runs where key = m.task_key offset 0) t;

-- name: tasks.expired
select t.*
from (
  select task_key from leases where expires_at <= $1 order by expires_at limit $2
) l
cross join lateral (select :task_row: from task_runs where key = l.task_key offset 0) t;

-- name: tasks.leased_by
select t.*
from (
  select task_key from leases where worker = $1 offset 0
) l
cross join lateral (select :task_row: from task_runs where key = l.task_key offset 0) t
order by t.key;

-- name: tasks.by_claim
select t.*
from (
  select task_key from leases where claim_id = $1 offset 0
) l
cross join lateral (select :task_row: from task_runs where key = l.task_key offset 0) t
order by t.key;

-- name: tasks.asking
-- $1 after, $2 run or null, $3 limit
select t.*
from (
  select task_key
  from task_marks
  where kind = 'asking' and task_key > $1 and ($2::bigint is null or run_key = $2)
  order by task_key
  limit $3
) m
cross join lateral (select :task_row: from task_runs where key = m.task_key offset 0) t;

-- name: tasks.dead
select t.*
from (
  select task_key
  from task_marks
  where kind = 'dead' and task_key > $1 and ($2::bigint is null or run_key = $2)
  order by task_key
  limit $3
) m
cross join lateral (select :task_row: from task_runs where key = m.task_key offset 0) t;

-- name: tasks.limbo
-- Unfinished rows that nothing would ever move. Each branch is one way out that a row must have, looked up row by row: without
-- `offset 0` the planner may read the other table from end to end and make a hash of it.
select t.*
from (
  select key, paused, n_queued, n_leased
  from runs
  where status in ('PENDING', 'RUNNING', 'WAITING') and n_cursors = 0
  offset 0
) r
cross join lateral (
  select :task_row:
  from task_runs
  where run_key = r.key and status in ('PENDING', 'READY', 'QUEUED', 'BLOCKED', 'WAITING_INPUT')
  offset 0
) t
where not (t.status = 'PENDING' and t.undecided = 1)
  and not (t.status = 'PENDING' and t.deps_remaining > 0 and exists (
    select 1
    from (select parent from edges where child = t.key offset 0) e
    cross join lateral (select status from task_runs where key = e.parent offset 0) p
    where p.status not in ('SUCCESS', 'FAILED', 'CANCELLED', 'SKIPPED')))
  and not (t.status = 'PENDING' and t.deps_remaining > 0 and exists (
    select 1
    from (select status from task_runs where map_key = t.key offset 0) i
    where i.status not in ('SUCCESS', 'FAILED', 'CANCELLED', 'SKIPPED')))
  -- Room in a run or a map comes when a task that has some goes on; such a task may wait for a limit itself.
  and not (t.status = 'READY' and t.waiting_for in ('capacity', 'paused') and (
    r.paused = 1 or r.n_queued + r.n_leased > 0 or exists (
      select 1 from (select 1 from held_tasks where run_key = t.run_key limit 1) h)))
  -- A limit lets its tasks go by itself; a budget only when an attempt of the run ends.
  and not (t.status = 'READY' and t.waiting_for in ('limit', 'budget') and exists (
    select 1
    from (select task_key, place from held_tasks where run_key = t.run_key offset 0) h
    where h.task_key = t.key and (h.place <> ':budget' or r.n_leased > 0)))
  and not (t.status = 'QUEUED' and t.in_queue = 1 and exists (
    select 1
    from (select 1 from claimable where queue_key = t.queue_key and rank = -t.priority and task_key = t.key offset 0) c))
  and not (t.status = 'QUEUED' and t.in_queue = 0 and t.not_before is not null and exists (
    select 1
    from (
      select 1 from timers where due_at = t.not_before and kind in ('retry', 'wait') and subject = t.key offset 0
    ) m))
  and not (t.status in ('BLOCKED', 'WAITING_INPUT') and t.question_id is not null)
limit $1;

-- name: leases.add
insert into leases (task_key, expires_at, worker, claim_id)
select u.task_key, u.expires_at, u.worker, u.claim_id
from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) u (task_key, expires_at, worker, claim_id);

-- name: leases.change
update leases l set expires_at = u.expires_at, worker = u.worker, claim_id = u.claim_id
from (
  select x.place, w.expires_at, w.worker, w.claim_id
  from unnest($1::bigint[], $2::bigint[], $3::text[], $4::text[]) w (task_key, expires_at, worker, claim_id)
  cross join lateral (select ctid as place from leases where task_key = w.task_key offset 0) x
) u
where l.ctid = u.place;

-- name: leases.remove
delete from leases where task_key = any ($1::bigint[]);

-- name: marks.add
insert into task_marks (kind, task_key, run_key, rank, map_key)
select u.kind, u.task_key, u.run_key, u.rank, u.map_key
from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]) u (kind, task_key, run_key, rank, map_key)
on conflict do nothing;

-- name: marks.remove
-- One by one: `any` would be a filter over all marks of the kind.
delete from task_marks
where ctid = any (array(
  select m.place
  from unnest($2::bigint[]) u (task_key)
  cross join lateral (select ctid as place from task_marks where kind = $1 and task_key = u.task_key offset 0) m
));
