-- What can be claimed now. Small: delayed, held back and finished rows are elsewhere.

-- name: queues.all
select key, handler, worker from queues order by key;

-- name: queues.add
insert or ignore into queues (handler, worker) values (?1, ?2);

-- name: queues.find
select key from queues where handler = ?1 and worker = ?2;

-- name: claimable.remove
-- ?1 tasks, ?2 queue, ?3 rank
delete from claimable
where queue_key = ?2 and rank = ?3 and task_key in (select value from json_each(?1));

-- name: claimable.queues
-- The queues that hold something, found by jumping from key to key.
with recursive q (key) as (
  select min(queue_key) from claimable
  union all
  select (select min(c.queue_key) from claimable c where c.queue_key > q.key) from q where q.key is not null
)
select key from q where key is not null;

-- name: claimable.peek
select json_group_array(json_array(queue_key, rank, task_key, run_key)) as list
from (
  select * from claimable where queue_key = ?1 order by rank, task_key limit ?2
);

-- name: claimable.of_run
-- For a process that works on one run alone; found through the run, because the table is ordered for everybody.
-- ?1 run, ?2 queues as JSON or null, ?3 limit
select c.queue_key, c.rank, c.task_key, c.run_key
from claimable c
where c.run_key = ?1 and (?2 is null or c.queue_key in (select value from json_each(?2)))
order by c.rank, c.task_key
limit ?3;

-- name: claimable.count
select count(*) as n from claimable;
