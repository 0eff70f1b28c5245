-- Task runs and the edges between them. Rows go back as one JSON list; `save` is built from the changed columns.

-- define: task_row
json_array(
  key, id, run_key, task_id, map_index, status, waiting_for, reason, undecided, is_plain, is_finally,
  is_tolerated, priority, queue_key, deps_remaining, deps_ok, attempt, attempts_spent, losses, releases,
  unstarted, generation, version, in_queue, not_before, lease_id, leased_by, lease_expires_at, lease_ms,
  claim_id, deadline_at, started_at, finished_at, timeout_ms, retry, progress, message, checkpoint, gate,
  question, question_id, answers, output_attempt, error, usage, spec, map_key, map_size, map_failed, map_slots, limits
)

-- name: tasks.by_keys
select json_group_array(:task_row:) as list
from (
  select * from task_runs where key in (select value from json_each(?1)) order by key
);

-- name: tasks.by_id
select json_group_array(:task_row:) as list
from (
  select * from task_runs where id = ?1
);

-- name: tasks.keys_of
select id, key from task_runs where id in (select value from json_each(?1));

-- name: tasks.by_task_ids
-- Items have the name of their map; they are asked for with `tasks.items`.
select json_group_array(:task_row:) as list
from (
  select * from task_runs
  where run_key = ?1 and map_key is null and task_id in (select value from json_each(?2))
  order by key
);

-- name: tasks.of_run
select json_group_array(:task_row:) as list
from (
  select * from task_runs where run_key = ?1 and key > ?2 order by key limit ?3
);

-- name: tasks.nodes_of
select json_group_array(:task_row:) as list
from (
  select * from task_runs where run_key = ?1 and map_key is null and key > ?2 order by key limit ?3
);

-- name: tasks.items
select json_group_array(:task_row:) as list
from (
  select * from task_runs where map_key = ?1 and map_index >= ?2 order by map_index limit ?3
);

-- name: tasks.held
select json_group_array(:task_row:) as list
from (
  select * from task_runs where map_key = ?1 and status = 'READY' and map_slots = 0 order by key limit ?2
);

-- name: tasks.children_of
-- Ordered by child, so that a cursor can go on after the last one it has seen.
select json_group_array(json_array(parent, child)) as list
from (
  select e.parent, e.child
  from json_each(?1) j
  join edges e on e.parent = j.value
  where e.child > ?2
  order by e.child, e.parent
  limit ?3
);

-- name: tasks.priorities_below
select distinct t.priority
from edges e
cross join task_runs t
where e.parent = ?1 and t.key = e.child
limit ?2;

-- name: tasks.parents_of
select json_group_array(json_array(parent, child)) as list
from (
  select e.parent, e.child
  from json_each(?1) j
  join edges e indexed by edges_by_child on e.child = j.value
  order by e.child, e.parent
);

-- name: tasks.link
insert into edges (parent, child)
select j.value ->> 0, j.value ->> 1
from json_each(?1) j;

-- name: tasks.unfinished
select json_group_array(:task_row:) as list
from (
  select * from task_runs
  where run_key = ?1 and key > ?2 and status not in ('SUCCESS', 'FAILED', 'CANCELLED', 'SKIPPED')
  order by key
  limit ?3
);

-- name: tasks.ready
-- What a limit or a budget holds back is not for admission.
select json_group_array(:task_row:) as list
from (
  select * from task_runs
  where run_key = ?1 and status = 'READY' and map_slots is not 0
    and waiting_for <> 'limit' and waiting_for <> 'budget'
  order by priority desc, key
  limit ?2
);

-- name: tasks.undecided
select json_group_array(:task_row:) as list
from (
  select * from task_runs where undecided = 1 order by key limit ?1
);

-- name: tasks.expired
select json_group_array(:task_row:) as list
from (
  select * from task_runs
  where lease_id is not null and lease_expires_at <= ?1
  order by lease_expires_at
  limit ?2
);

-- name: tasks.leased_by
select json_group_array(:task_row:) as list
from (
  select * from task_runs where lease_id is not null and leased_by = ?1
);

-- name: tasks.by_claim
select json_group_array(:task_row:) as list
from (
  select * from task_runs where claim_id = ?1 and lease_id is not null order by key
);

-- name: tasks.asking
-- ?1 after, ?2 run or null, ?3 limit
select json_group_array(:task_row:) as list
from (
  select * from task_runs
  where question_id is not null and key > ?1 and (?2 is null or run_key = ?2)
  order by key
  limit ?3
);

-- name: tasks.dead
-- Of a map whose items have failed, the items are dead and not the map.
select json_group_array(:task_row:) as list
from (
  select * from task_runs
  where status = 'FAILED' and reason not in ('purged', 'items_failed') and key > ?1 and (?2 is null or run_key = ?2)
  order by key
  limit ?3
);

-- name: tasks.limbo
-- Unfinished rows that nothing would ever move. Each branch is one way out that a row must have.
select json_group_array(:task_row:) as list
from (
  select t.*
  from task_runs t
  join runs r on r.key = t.run_key
  where r.status in ('PENDING', 'RUNNING', 'WAITING')
    and r.n_cursors = 0
    and t.status in ('PENDING', 'READY', 'QUEUED', 'BLOCKED', 'WAITING_INPUT')
    and not (t.status = 'PENDING' and t.undecided = 1)
    and not (t.status = 'PENDING' and t.deps_remaining > 0 and exists (
      select 1 from edges e join task_runs p on p.key = e.parent
      where e.child = t.key and p.status not in ('SUCCESS', 'FAILED', 'CANCELLED', 'SKIPPED')))
    and not (t.status = 'PENDING' and t.deps_remaining > 0 and exists (
      select 1 from task_runs i
      where i.map_key = t.key and i.status not in ('SUCCESS', 'FAILED', 'CANCELLED', 'SKIPPED')))
    -- Room in a run or a map comes when a task that has some goes on; such a task may wait for a limit itself.
    and not (t.status = 'READY' and t.waiting_for in ('capacity', 'paused') and (
      r.paused = 1 or r.n_queued + r.n_leased > 0 or exists (select 1 from held_tasks h where h.run_key = t.run_key)))
    -- A limit lets its tasks go by itself; a budget only when an attempt of the run ends.
    and not (t.status = 'READY' and t.waiting_for in ('limit', 'budget') and exists (
      select 1 from held_tasks h where h.run_key = t.run_key and h.task_key = t.key and (h.place <> ':budget' or r.n_leased > 0)))
    and not (t.status = 'QUEUED' and t.in_queue = 1 and exists (
      select 1 from claimable c where c.queue_key = t.queue_key and c.rank = -t.priority and c.task_key = t.key))
    and not (t.status = 'QUEUED' and t.in_queue = 0 and t.not_before is not null and exists (
      select 1 from timers m where m.due_at = t.not_before and m.kind in ('retry', 'wait') and m.subject = t.key))
    and not (t.status in ('BLOCKED', 'WAITING_INPUT') and t.question_id is not null)
  limit ?1
);
