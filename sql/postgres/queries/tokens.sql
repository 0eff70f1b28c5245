-- Who may call the server, and what there is to do.

-- name: tokens.insert
insert into tokens (id, name, scopes, hash, created_at, last_used_at, revoked_at)
values ($1, $2, $3, $4, $5, $6, $7);

-- name: tokens.by_hash
select id, name, scopes, hash, created_at, last_used_at, revoked_at from tokens where hash = $1;

-- name: tokens.list
select id, name, scopes, hash, created_at, last_used_at, revoked_at from tokens order by created_at, id;

-- name: tokens.revoke
update tokens set revoked_at = $2 where id = $1 and revoked_at is null;

-- name: tokens.touch
update tokens set last_used_at = $2 where id = $1;

-- name: stats.hand_out
-- $1 now. What can be claimed, since when the oldest of it has been in the store, and what is leased.
select
  (select count(*) from claimable) as queued,
  (select r.created_at from runs r where r.key = (select min(c.run_key) from claimable c)) as oldest_at,
  (select count(*) from leases) as leased,
  (select count(*) from task_marks where kind = 'asking') as asking,
  (select count(*) from timers where due_at > $1) as delayed;

-- name: stats.runs
select status, count(*) as n from runs group by status;
