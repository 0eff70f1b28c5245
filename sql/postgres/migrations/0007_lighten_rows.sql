-- relay: compatible
-- A check constraint is read and planned again by every statement that writes the table, which cost a hop more than its two
-- updates. The states are domains instead, whose rules a session keeps. That a lease has a worker and an end is required by
-- the columns of `leases`; that it stands on leased tasks alone is the engine's promise, and the tests' to check.

create domain run_status as text check (value in ('PENDING', 'RUNNING', 'WAITING', 'SUCCESS', 'FAILED', 'CANCELLED'));
create domain task_status as text check (
  value = 'SUCCESS' or value = 'RUNNING' or value = 'QUEUED' or value = 'PENDING' or value = 'READY' or value = 'LEASED'
  or value = 'FAILED' or value = 'SKIPPED' or value = 'CANCELLED' or value = 'BLOCKED' or value = 'WAITING_INPUT'
);
alter table runs drop constraint runs_status_check,
  alter column status type run_status;
alter table task_runs
  drop constraint task_runs_status_check,
  drop constraint task_runs_check,
  alter column status type task_status,
  -- A task is written some four times; with this much room each version finds a place on its page and touches no index.
  set (fillfactor = 45);
