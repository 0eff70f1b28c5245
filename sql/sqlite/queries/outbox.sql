-- Messages for a broker: written with the change itself, taken by daemons, marked when they are sent.

-- define: is_current
exists (select 1 from task_runs t where t.key = o.task_key and t.status = 'QUEUED' and t.attempt + 1 = o.attempt)

-- define: untold
from claimable c
join task_runs t on t.key = c.task_key and t.status = 'QUEUED'
where not exists (select 1 from outbox o where o.task_key = c.task_key)
  and not exists (select 1 from outbox_marks m where m.task_key = c.task_key)
  and not exists (select 1 from dead_letters d where d.task_key = c.task_key and d.attempt = t.attempt + 1)

-- name: outbox.make_home
insert into outbox_home (is_only, id) values (1, ?1) on conflict do nothing;

-- name: outbox.home
select id from outbox_home;

-- name: outbox.add
-- An entry into QUEUED takes the place of whatever was to be told about the task before. `where true` ends the select for the parser.
insert into outbox (task_key, run_key, queue_key, rank, attempt, due, available_at, created_at)
select
  j.value ->> 0, j.value ->> 1, j.value ->> 2, j.value ->> 3, j.value ->> 4, j.value ->> 5, j.value ->> 6, j.value ->> 7
from json_each(?1) j
where true
on conflict (task_key) do update set
  queue_key = excluded.queue_key, rank = excluded.rank, attempt = excluded.attempt, schema_version = 1,
  due = excluded.due, available_at = excluded.available_at, created_at = excluded.created_at,
  retries = 0, last_error = null, owner = null, claimed_until = null;

-- name: outbox.remove
delete from outbox where task_key in (select value from json_each(?1));

-- name: outbox.wake
-- ?1 now, ?2 limit
update outbox set due = 1
where task_key in (
  select task_key from outbox where due = 0 and available_at <= ?1 order by available_at limit ?2
);

-- name: outbox.peek
-- Whether there is something to send now, and when the next delayed message is due.
select
  (select count(*) from (select 1 from outbox where due = 1 limit 1) d) as due,
  (select min(available_at) from outbox where due = 0) as next_at;

-- name: outbox.is_untidy
-- ?1 now
select
  exists (select 1 from outbox o where o.due = 1 and (o.claimed_until is null or o.claimed_until <= ?1) and not :is_current:)
  or exists (select 1 :untold:) as is_untidy;

-- name: outbox.drop_stale
-- ?1 now, ?2 limit. Tasks that have moved on by a process that knows of no broker.
delete from outbox
where task_key in (
  select o.task_key
  from outbox o
  where o.due = 1 and (o.claimed_until is null or o.claimed_until <= ?1) and not :is_current:
  order by o.rank, o.task_key
  limit ?2
);

-- name: outbox.adopt
-- ?1 now, ?2 limit. Claimable tasks of which nobody was told: older than the broker, or from a process without one.
insert into outbox (task_key, run_key, queue_key, rank, attempt, due, available_at, created_at)
select c.task_key, c.run_key, c.queue_key, c.rank, t.attempt + 1, 1, ?1, ?1
:untold:
limit ?2
on conflict do nothing;

-- name: outbox.drop_marks
-- Marks of tasks that were claimed, or that are to be told of again.
delete from outbox_marks
where task_key in (
  select m.task_key
  from outbox_marks m
  where not exists (
      select 1 from claimable c
      where c.queue_key = m.queue_key and c.rank = m.rank and c.task_key = m.task_key
    )
    or exists (select 1 from outbox o where o.task_key = m.task_key)
);

-- name: outbox.take
-- ?1 now, ?2 owner, ?3 until, ?4 limit, ?5 window. A delayed task is taken only once it can be claimed.
update outbox set owner = ?2, claimed_until = ?3
where task_key in (
  select o.task_key
  from outbox o
  where o.due = 1
    and o.schema_version = 1
    and (o.claimed_until is null or o.claimed_until <= ?1)
    and exists (
      select 1 from claimable c
      where c.queue_key = o.queue_key and c.rank = o.rank and c.task_key = o.task_key
    )
    and :is_current:
  order by o.rank, o.task_key
  limit max(0, min(?4, ?5 - (select count(*) from outbox_marks)))
)
returning
  task_key, run_key, queue_key, rank, attempt, retries,
  (select t.id from task_runs t where t.key = outbox.task_key) as task_run_id,
  (select r.id from runs r where r.key = outbox.run_key) as run_id,
  (select r.settings from runs r where r.key = outbox.run_key) as run_settings;

-- name: outbox.lock_owned
-- ?1 owner, ?2 keys. What is still the owner's; a row that the engine is writing at the moment is left to it.
select task_key from outbox where task_key in (select value from json_each(?2)) and owner = ?1 order by task_key;

-- name: outbox.renew
-- ?1 keys, ?2 until
update outbox set claimed_until = ?2 where task_key in (select value from json_each(?1));

-- name: outbox.mark
-- ?1 keys, ?2 now. A sent message leaves its mark before its row goes.
insert into outbox_marks (task_key, queue_key, rank, published_at)
select task_key, queue_key, rank, ?2 from outbox where task_key in (select value from json_each(?1))
on conflict (task_key) do update set
  queue_key = excluded.queue_key, rank = excluded.rank, published_at = excluded.published_at;

-- name: outbox.defer
-- A list of: key, time, retries, error.
update outbox set
  due = 0, available_at = j.value ->> 1, retries = j.value ->> 2, last_error = j.value ->> 3, owner = null,
  claimed_until = null
from json_each(?1) j
where outbox.task_key = j.value ->> 0;

-- name: outbox.release
update outbox set owner = null, claimed_until = null where task_key in (select value from json_each(?1));

-- name: outbox.bury
-- ?1 now, ?2 a list of: key, retries, error.
insert into dead_letters (task_key, run_key, queue_key, rank, attempt, retries, last_error, created_at, died_at)
select o.task_key, o.run_key, o.queue_key, o.rank, o.attempt, j.value ->> 1, j.value ->> 2, o.created_at, ?1
from json_each(?2) j
join outbox o on o.task_key = j.value ->> 0;

-- name: outbox.stats
-- ?1 now
select
  (select count(*) from outbox where due = 1) as depth,
  (select min(available_at) from outbox where due = 1) as oldest_at,
  (select count(*) from outbox where due = 0) as delayed,
  (select count(*) from outbox where claimed_until > ?1) as in_flight,
  (
    select count(*)
    from outbox_marks m
    where exists (
      select 1 from claimable c where c.queue_key = m.queue_key and c.rank = m.rank and c.task_key = m.task_key
    )
  ) as outstanding,
  (select count(*) from dead_letters) as dead,
  (select count(*) from outbox where schema_version <> 1) as unknown;

-- name: outbox.list
-- ?1 after, ?2 limit
select
  o.task_key as key, t.id as task_run_id, r.id as run_id, t.task_id, o.attempt, o.due, o.available_at, o.created_at,
  o.retries, o.last_error, o.owner, o.claimed_until
from (
  select * from outbox where task_key > ?1 order by task_key limit ?2
) o
join task_runs t on t.key = o.task_key
join runs r on r.key = o.run_key
order by o.task_key;

-- name: dead_letters.list
-- ?1 after, ?2 limit
select
  d.key, d.task_key, d.run_key, t.id as task_run_id, r.id as run_id, t.task_id, d.attempt, d.retries, d.last_error,
  d.created_at, d.died_at
from (
  select * from dead_letters where key > ?1 order by key limit ?2
) d
join task_runs t on t.key = d.task_key
join runs r on r.key = d.run_key
order by d.key;

-- name: dead_letters.replay
-- ?1 keys, ?2 now. Only what the task still waits for goes back; the rest is over.
insert into outbox (task_key, run_key, queue_key, rank, attempt, due, available_at, created_at)
select d.task_key, d.run_key, d.queue_key, d.rank, d.attempt, 1, ?2, ?2
from dead_letters d
where d.key in (select value from json_each(?1)) and exists (
  select 1 from task_runs t where t.key = d.task_key and t.status = 'QUEUED' and t.attempt + 1 = d.attempt
)
on conflict do nothing
returning task_key;

-- name: dead_letters.purge
delete from dead_letters where key in (select value from json_each(?1));

-- name: runs.remove_outbox
delete from outbox
where task_key in (select key from task_runs where run_key in (select value from json_each(?1)));

-- name: runs.remove_dead_letters
delete from dead_letters where run_key in (select value from json_each(?1));
