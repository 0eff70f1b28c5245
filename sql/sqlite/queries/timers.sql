-- What is due at a time, and work that goes on in chunks.

-- define: cursor_order
case kind when 'unlock' then 0 when 'expand' then 2 else 1 end, case kind when 'expand' then position end, key

-- define: cursor_is_due
-- An unlock that waits says how many handed-out tasks its run may have before it goes on; what is stopped is waited for no more.
  (data is null or (
    select n_ready + n_queued <= cast(data as integer) or stopping = 1 or cancelled = 1 from runs where key = cursors.run_key
  ))

-- name: timers.add
insert or ignore into timers (due_at, kind, subject)
select j.value ->> 0, j.value ->> 1, j.value ->> 2
from json_each(?1) j;

-- name: timers.remove
delete from timers
where (due_at, kind, subject) in (select j.value ->> 0, j.value ->> 1, j.value ->> 2 from json_each(?1) j);

-- name: timers.due
select due_at, kind, subject from timers where due_at <= ?1 order by due_at limit ?2;

-- name: timers.next
select min(due_at) as due_at from timers;

-- name: cursors.add
insert into cursors (kind, run_key, subject, position, data)
select j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3, j.value ->> 4
from json_each(?1) j;

-- name: cursors.first
-- Children of a failure are told before the run is swept, so that they are skipped and not cancelled. Items of maps are made last,
-- shorter lists first: a long list keeps nobody waiting.
select key, kind, run_key, subject, position, data from cursors where :cursor_is_due: order by :cursor_order: limit ?1;

-- name: cursors.of_run
select key, kind, run_key, subject, position, data from cursors where run_key = ?1 order by key;

-- name: cursors.move
update cursors set position = ?2 where key = ?1;

-- name: cursors.remove
delete from cursors where key in (select value from json_each(?1));
