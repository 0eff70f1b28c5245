-- What is due at a time, and work that goes on in chunks.

-- define: cursor_order
case kind when 'unlock' then 0 when 'expand' then 2 else 1 end, case kind when 'expand' then position end, key

-- define: cursor_is_due
-- An unlock that waits says how many handed-out tasks its run may have before it goes on; what is stopped is waited for no more.
  (data is null or (
    select n_ready + n_queued <= data::bigint or stopping = 1 or cancelled = 1 from runs where key = cursors.run_key
  ))

-- name: timers.add
insert into timers (due_at, kind, subject)
select u.due_at, u.kind, u.subject
from unnest($1::bigint[], $2::text[], $3::bigint[]) u (due_at, kind, subject)
on conflict do nothing;

-- name: timers.remove
delete from timers
where ctid = any (array(
  select t.place
  from unnest($1::bigint[], $2::text[], $3::bigint[]) u (due_at, kind, subject)
  cross join lateral (
    select ctid as place from timers where due_at = u.due_at and kind = u.kind and subject = u.subject offset 0
  ) t
));

-- name: timers.due
-- Says also whose lock covers the timer; null when its task is gone.
select
  m.due_at, m.kind, m.subject,
  case when m.kind = 'run_timeout' then m.subject else (select t.run_key from task_runs t where t.key = m.subject) end as run_key
from timers m
where m.due_at <= $1
order by m.due_at
limit $2;

-- name: timers.next
select min(due_at) as due_at from timers;

-- name: cursors.add
insert into cursors (kind, run_key, subject, position, data)
select u.kind, u.run_key, u.subject, u.position, u.data
from unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[]) u (kind, run_key, subject, position, data);

-- name: cursors.first
-- Children of a failure are told before the run is swept, so that they are skipped and not cancelled. Items of maps are made last,
-- shorter lists first: a long list keeps nobody waiting.
select key, kind, run_key, subject, position, data from cursors where :cursor_is_due: order by :cursor_order: limit $1;

-- name: cursors.free_runs
-- The runs of the first cursors that nobody else works on; they are locked from here on.
select c.run_key
from (
  select run_key from cursors where :cursor_is_due: order by :cursor_order: offset 0
) c
cross join lateral (select 1 from runs where key = c.run_key for no key update skip locked) r
limit $1;

-- name: cursors.first_of_runs
select key, kind, run_key, subject, position, data
from cursors
where run_key = any ($1::bigint[]) and :cursor_is_due:
order by :cursor_order:
limit $2;

-- name: cursors.of_run
select key, kind, run_key, subject, position, data from cursors where run_key = $1 order by key;

-- name: cursors.move
update cursors set position = $2 where key = $1;

-- name: cursors.remove
delete from cursors where key = any ($1::bigint[]);
