-- Messages for a broker: written with the change itself, taken by daemons, marked when they are sent.
-- Rows are looked up one by one (`offset 0` keeps it so; a task by its run as well), whatever the planner believes about sizes.

-- define: is_current
exists (
  select 1
  from (
    select 1
    from task_runs
    where run_key = o.run_key and key = o.task_key and status = 'QUEUED' and attempt + 1 = o.attempt
    offset 0
  ) t
)

-- define: untold
from (select queue_key, rank, task_key, run_key from claimable offset 0) c
cross join lateral (
  select attempt from task_runs where run_key = c.run_key and key = c.task_key and status = 'QUEUED' offset 0
) t
where not exists (select 1 from (select 1 from outbox where task_key = c.task_key offset 0) o)
  and not exists (select 1 from (select 1 from outbox_marks where task_key = c.task_key offset 0) m)
  and not exists (
    select 1 from (select 1 from dead_letters where task_key = c.task_key and attempt = t.attempt + 1 offset 0) d
  )

-- define: is_free
(claimed_until is null or claimed_until <= $1)

-- define: is_marked_live
exists (
  select 1
  from (select 1 from claimable where queue_key = m.queue_key and rank = m.rank and task_key = m.task_key offset 0) c
)

-- name: outbox.make_home
insert into outbox_home (is_only, id) values (1, $1) on conflict do nothing;

-- name: outbox.home
select id from outbox_home;

-- name: outbox.add
-- An entry into QUEUED takes the place of whatever was to be told about the task before.
insert into outbox (task_key, run_key, queue_key, rank, attempt, due, available_at, created_at)
select u.task_key, u.run_key, u.queue_key, u.rank, u.attempt, u.due, u.available_at, $8::bigint
from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[])
  u (task_key, run_key, queue_key, rank, attempt, due, available_at)
on conflict (task_key) do update set
  queue_key = excluded.queue_key, rank = excluded.rank, attempt = excluded.attempt, schema_version = 1,
  due = excluded.due, available_at = excluded.available_at, created_at = excluded.created_at,
  retries = 0, last_error = null, owner = null, claimed_until = null;

-- name: outbox.remove
delete from outbox where task_key = any ($1::bigint[]);

-- name: outbox.wake
-- $1 now, $2 limit
update outbox set due = 1
where task_key = any (array(
  select task_key from outbox where due = 0 and available_at <= $1 order by available_at limit $2 for update skip locked
));

-- name: outbox.peek
-- Whether there is something to send now, and when the next delayed message is due.
select
  (select count(*) from (select 1 from outbox where due = 1 limit 1) d) as due,
  (select min(available_at) from outbox where due = 0) as next_at;

-- name: outbox.is_untidy
-- $1 now
select
  exists (
    select 1 from (select task_key, run_key, attempt from outbox where due = 1 and :is_free: offset 0) o where not :is_current:
  )
  or exists (select 1 :untold:) as is_untidy;

-- name: outbox.drop_stale
-- $1 now, $2 limit. Tasks that have moved on by a process that knows of no broker.
delete from outbox
where task_key = any (array(
  select o.task_key
  from (
    select o.task_key from outbox o where o.due = 1 and not :is_current: order by o.rank, o.task_key offset 0
  ) o
  cross join lateral (
    select 1 from outbox where task_key = o.task_key and :is_free: for update skip locked
  ) l
  limit $2
));

-- name: outbox.adopt
-- $1 now, $2 limit. Claimable tasks of which nobody was told: older than the broker, or from a process without one.
insert into outbox (task_key, run_key, queue_key, rank, attempt, due, available_at, created_at)
select c.task_key, c.run_key, c.queue_key, c.rank, t.attempt + 1, 1, $1::bigint, $1::bigint
:untold:
limit $2
on conflict do nothing;

-- name: outbox.drop_marks
-- Marks of tasks that were claimed, or that are to be told of again.
delete from outbox_marks
where task_key = any (array(
  select m.task_key
  from (
    select m.task_key
    from outbox_marks m
    where not :is_marked_live: or exists (select 1 from (select 1 from outbox where task_key = m.task_key offset 0) o)
    order by m.task_key
    offset 0
  ) m
  cross join lateral (select 1 from outbox_marks where task_key = m.task_key for update skip locked) l
));

-- name: outbox.relax
-- This commit need not be on disk when it is heard of: if the server forgets it, a message is sent twice and claimed once.
select set_config('synchronous_commit', 'off', true);

-- name: outbox.take
-- $1 now, $2 owner, $3 until, $4 limit, $5 window. A delayed task is taken only once it can be claimed.
update outbox set owner = $2, claimed_until = $3
where task_key = any (array(
  select o.task_key
  from (
    select task_key, run_key, queue_key, rank, attempt
    from outbox
    where due = 1 and schema_version = 1 and :is_free:
    order by rank, task_key
    offset 0
  ) o
  cross join lateral (
    select 1 from claimable where queue_key = o.queue_key and rank = o.rank and task_key = o.task_key offset 0
  ) c
  cross join lateral (
    select 1
    from task_runs
    where run_key = o.run_key and key = o.task_key and status = 'QUEUED' and attempt + 1 = o.attempt
    offset 0
  ) t
  cross join lateral (
    select 1 from outbox where task_key = o.task_key and :is_free: for update skip locked
  ) l
  limit greatest(0, least($4::bigint, $5::bigint - (select count(*) from outbox_marks)))
))
returning
  task_key, run_key, queue_key, rank, attempt, retries,
  (select t.id from task_runs t where t.run_key = outbox.run_key and t.key = outbox.task_key) as task_run_id,
  (select r.id from runs r where r.key = outbox.run_key) as run_id,
  (select r.settings from runs r where r.key = outbox.run_key) as run_settings;

-- name: outbox.lock_owned
-- $1 owner, $2 keys. What is still the owner's; a row that the engine is writing at the moment is left to it.
select task_key from outbox where task_key = any ($2::bigint[]) and owner = $1 order by task_key for update skip locked;

-- name: outbox.renew
-- $1 keys, $2 until
update outbox set claimed_until = $2 where task_key = any ($1::bigint[]);

-- name: outbox.mark
-- $1 keys, $2 now. A sent message leaves its mark before its row goes.
insert into outbox_marks (task_key, queue_key, rank, published_at)
select task_key, queue_key, rank, $2::bigint from outbox where task_key = any ($1::bigint[])
on conflict (task_key) do update set
  queue_key = excluded.queue_key, rank = excluded.rank, published_at = excluded.published_at;

-- name: outbox.defer
-- Lists: keys, times, retries, errors.
update outbox set
  due = 0, available_at = u.available_at, retries = u.retries, last_error = u.last_error, owner = null, claimed_until = null
from (
  select x.place, w.available_at, w.retries, w.last_error
  from unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::text[]) w (task_key, available_at, retries, last_error)
  cross join lateral (select ctid as place from outbox where task_key = w.task_key offset 0) x
) u
where outbox.ctid = u.place;

-- name: outbox.release
update outbox set owner = null, claimed_until = null where task_key = any ($1::bigint[]);

-- name: outbox.bury
-- $1 now, then lists: keys, retries, errors.
insert into dead_letters (task_key, run_key, queue_key, rank, attempt, retries, last_error, created_at, died_at)
select o.task_key, o.run_key, o.queue_key, o.rank, o.attempt, u.retries, u.last_error, o.created_at, $1::bigint
from unnest($2::bigint[], $3::bigint[], $4::text[]) u (task_key, retries, last_error)
cross join lateral (
  select task_key, run_key, queue_key, rank, attempt, created_at from outbox where task_key = u.task_key offset 0
) o;

-- name: outbox.stats
-- $1 now
select
  (select count(*) from outbox where due = 1) as depth,
  (select min(available_at) from outbox where due = 1) as oldest_at,
  (select count(*) from outbox where due = 0) as delayed,
  (select count(*) from outbox where claimed_until > $1) as in_flight,
  (select count(*) from outbox_marks m where :is_marked_live:) as outstanding,
  (select count(*) from dead_letters) as dead,
  (select count(*) from outbox where schema_version <> 1) as unknown;

-- name: outbox.list
-- $1 after, $2 limit
select
  o.task_key as key, t.id as task_run_id, r.id as run_id, t.task_id, o.attempt, o.due, o.available_at, o.created_at,
  o.retries, o.last_error, o.owner, o.claimed_until
from (
  select * from outbox where task_key > $1 order by task_key limit $2
) o
cross join lateral (select id, task_id from task_runs where key = o.task_key offset 0) t
cross join lateral (select id from runs where key = o.run_key offset 0) r
order by o.task_key;

-- name: dead_letters.list
-- $1 after, $2 limit
select
  d.key, d.task_key, d.run_key, t.id as task_run_id, r.id as run_id, t.task_id, d.attempt, d.retries, d.last_error,
  d.created_at, d.died_at
from (
  select * from dead_letters where key > $1 order by key limit $2
) d
cross join lateral (select id, task_id from task_runs where key = d.task_key offset 0) t
cross join lateral (select id from runs where key = d.run_key offset 0) r
order by d.key;

-- name: dead_letters.replay
-- $1 keys, $2 now. Only what the task still waits for goes back; the rest is over.
insert into outbox (task_key, run_key, queue_key, rank, attempt, due, available_at, created_at)
select d.task_key, d.run_key, d.queue_key, d.rank, d.attempt, 1, $2::bigint, $2::bigint
from dead_letters d
where d.key = any ($1::bigint[]) and exists (
  select 1
  from (select 1 from task_runs where key = d.task_key and status = 'QUEUED' and attempt + 1 = d.attempt offset 0) t
)
on conflict do nothing
returning task_key;

-- name: dead_letters.purge
delete from dead_letters where key = any ($1::bigint[]);

-- name: runs.remove_outbox
delete from outbox
where task_key = any (array(select key from task_runs where run_key = any ($1::bigint[])));

-- name: runs.remove_dead_letters
delete from dead_letters where run_key = any ($1::bigint[]);
