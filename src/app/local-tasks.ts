/** Task runs of an engine in this process: state, content, and what people decide. */
import { RelayError } from '../base/errors.ts';
import { createRedactor, redactValue } from '../base/redact.ts';
import { contentOf } from '../engine/payload.ts';
import { TemplateError } from '../template/template.ts';
import type { TasksApi, TaskView } from './api.ts';
import type { Local } from './local-api.ts';
import { requireRun } from './reader.ts';
import * as views from './views.ts';

/** The part of the API that is about task runs. */
export function tasksApi(local: Local): TasksApi {
  const { engine, reader, by } = local;
  const { store, blobs } = engine.context;
  const act = async (id: string, action: () => Promise<unknown>): Promise<TaskView> => {
    await action();
    return reader.task(id);
  };
  return {
    get: (id) => reader.task(id),
    attempts: async (id) => {
      const rows = await store.read(async (tx) => tx.attempts.ofTask((await reader.taskRow(tx, id)).key));
      return { items: rows.map(views.attemptView), next_cursor: null };
    },
    artifacts: async (id) => {
      const rows = await store.read(async (tx) => tx.artifacts.ofTask((await reader.taskRow(tx, id)).key));
      return { items: rows.map(views.artifactView), next_cursor: null };
    },
    artifact: async (id) => {
      const place = views.parseArtifactId(id);
      const [row] = place === null ? [] : await store.read((tx) => tx.artifacts.find([place]));
      if (row === undefined) throw new RelayError('NOT_FOUND', `there is no artifact ${id}`);
      return contentOf(row, blobs);
    },
    logs: (id, page) => reader.logs(id, page),
    input: (id) => renderInput(local, id),
    approve: (id, { answer, question_id, idempotency_key }) =>
      act(id, () => engine.decide(id, { kind: 'approve', by, answer, question_id }, idempotency_key)),
    reject: (id, { reason, question_id, idempotency_key }) =>
      act(id, () => engine.decide(id, { kind: 'reject', by, reason, question_id }, idempotency_key)),
    answer: (id, { answer, question_id, idempotency_key }) =>
      act(id, () => engine.decide(id, { kind: 'approve', by, answer, question_id }, idempotency_key)),
    resume: (id, { question_id, idempotency_key } = {}) =>
      act(id, () => engine.decide(id, { kind: 'approve', by, question_id }, idempotency_key)),
    cancel: (id, keyed) => act(id, () => engine.cancelTask(id, { caller: by, key: keyed?.idempotency_key })),
    replay: (id, { reset_attempts, idempotency_key }) =>
      act(id, () => engine.replayTask(id, { resetAttempts: reset_attempts, by }, idempotency_key)),
  };
}

/** `with` as it was or will be rendered; secrets are masked wherever they came from. */
async function renderInput({ engine, reader }: Local, id: string): Promise<unknown> {
  const { store, plans, scopes } = engine.context;
  return store.read(async (tx) => {
    const task = await reader.taskRow(tx, id);
    const run = await requireRun(tx, task.run_key);
    const { config, list } = await plans.task(task, run, tx);
    // A map has no input of its own: every item has one.
    if (list !== null && task.map_key === null) return null;
    const [scope = {}] = await scopes.build(tx, [
      { task, run, references: config.references, isMasked: true },
    ]);
    try {
      return redactValue(config.render(scope), createRedactor(engine.secretValues));
    } catch (error) {
      if (!(error instanceof TemplateError)) throw error;
      const { message, hint } = error;
      throw new RelayError('INVALID_INPUT', `the input of ${task.task_id} cannot be rendered: ${message}`, {
        hint,
        cause: error,
      });
    }
  });
}
