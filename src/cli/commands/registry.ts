/** The commands, in the order of the help page. Adding one is a file and a line here. */
import type { CommandEntry } from '../command.ts';

export const COMMANDS: readonly CommandEntry[] = [
  {
    name: 'init',
    summary: 'write a commented starter project',
    load: async () => (await import('./init.ts')).buildInit,
  },
  {
    name: 'run',
    summary: 'run a workflow here to its end, and watch it',
    load: async () => (await import('./run.ts')).buildRun,
  },
  {
    name: 'resume',
    summary: 'carry on runs that an earlier process left unfinished',
    load: async () => (await import('./resume.ts')).buildResume,
  },
  {
    name: 'validate',
    summary: 'check a workflow file and explain every mistake',
    load: async () => (await import('./validate.ts')).buildValidate,
  },
  {
    name: 'graph',
    summary: 'draw a workflow as text, Mermaid, Graphviz or JSON',
    load: async () => (await import('./graph.ts')).buildGraphCommand,
  },
  {
    name: 'schema',
    summary: 'print the JSON Schema of workflow files, for editors',
    load: async () => (await import('./schema.ts')).buildSchema,
  },
  {
    name: 'config',
    summary: 'show the settings in force and where they come from',
    load: async () => (await import('./config.ts')).buildConfig,
  },
  {
    name: 'runs',
    summary: 'list, show, watch, cancel, retry, rerun, clone, pause and prune runs',
    load: async () => (await import('./runs.ts')).buildRuns,
  },
  {
    name: 'tasks',
    summary: 'show a task, its logs and artifacts, or replay it',
    load: async () => (await import('./tasks.ts')).buildTasks,
  },
  {
    name: 'approvals',
    summary: 'list and decide what waits for a person',
    load: async () => (await import('./approvals.ts')).buildApprovals,
  },
  {
    name: 'events',
    summary: 'print every change, in pages or as it happens',
    load: async () => (await import('./events.ts')).buildEvents,
  },
  {
    name: 'dead-letters',
    summary: 'list, replay or purge tasks that failed for good',
    load: async () => (await import('./dead-letters.ts')).buildDeadLetters,
  },
  {
    name: 'workflows',
    summary: 'list and show stored workflows',
    load: async () => (await import('./workflows.ts')).buildWorkflows,
  },
  {
    name: 'serve',
    summary: 'serve the HTTP API, run the loops and a worker',
    load: async () => (await import('./serve.ts')).buildServe,
  },
  {
    name: 'worker',
    summary: 'take tasks from a server or the store and run them',
    load: async () => (await import('./worker.ts')).buildWorker,
  },
  {
    name: 'outbox',
    summary: 'send messages to the broker, or look at those that wait',
    load: async () => (await import('./outbox.ts')).buildOutbox,
  },
  {
    name: 'workers',
    summary: 'list workers, or ask one to leave',
    load: async () => (await import('./workers.ts')).buildWorkers,
  },
  {
    name: 'limits',
    summary: 'show named limits and their use',
    load: async () => (await import('./limits.ts')).buildLimits,
  },
  {
    name: 'tokens',
    summary: 'make, list and revoke tokens for the server',
    load: async () => (await import('./tokens.ts')).buildTokens,
  },
  {
    name: 'migrate',
    summary: 'bring the schema of the store up to date',
    load: async () => (await import('./migrate.ts')).buildMigrate,
  },
  {
    name: 'backup',
    summary: 'copy a live embedded store',
    load: async () => (await import('./backup.ts')).buildBackup,
  },
  {
    name: 'doctor',
    summary: 'check this installation and its store',
    load: async () => (await import('./doctor.ts')).buildDoctor,
  },
  {
    name: 'bench',
    summary: 'measure what Relay costs on this machine',
    load: async () => (await import('./bench.ts')).buildBench,
  },
];
