/** Stands in for people while a run goes on: asks them in place, says yes for them (`--yes`), or leaves questions open. */
import type { ApprovalView, RelayApi } from '../../app/api.ts';
import { RelayError } from '../../base/errors.ts';
import type { Io } from '../io.ts';
import { ask } from './ask.ts';
import { defaultAnswer } from './form.ts';
import type { RunProgress } from './run-progress.ts';
import type { RunView } from './run-view.ts';

/** Who answers questions. */
export type PeopleMode = 'ask' | 'yes' | 'nobody';

/** Answers, or lets answer, the questions of one run. */
export class People {
  readonly #api: RelayApi;
  readonly #io: Io;
  readonly #view: RunView;
  readonly #mode: PeopleMode;
  readonly #leaving = new AbortController();
  /** Questions that could not be answered here. */
  readonly #left = new Set<string>();

  constructor(options: { api: RelayApi; io: Io; view: RunView; mode: PeopleMode }) {
    this.#api = options.api;
    this.#io = options.io;
    this.#view = options.view;
    this.#mode = options.mode;
  }

  /** Withdraws what is being asked. */
  leave(): void {
    this.#leaving.abort();
  }

  /** Sees to the questions of a run; true when one was decided. */
  async attend(progress: RunProgress): Promise<boolean> {
    if (this.#mode === 'nobody' || progress.count('BLOCKED', 'WAITING_INPUT') === 0) return false;
    const { items } = await this.#api.approvals.list({ run_id: progress.run.id });
    for (const question of items) {
      if (this.#left.has(question.question_id) || this.#leaving.signal.aborted) continue;
      if (await this.#decide(question)) return true;
    }
    return false;
  }

  async #decide(question: ApprovalView): Promise<boolean> {
    const { task_run_id, question_id } = question;
    const answered = this.#mode === 'yes' ? sayYes(question) : await this.#ask(question);
    if (answered === null) {
      this.#left.add(question_id);
      return false;
    }
    try {
      if (answered.kind === 'reject')
        await this.#api.tasks.reject(task_run_id, { question_id, reason: answered.reason });
      else await this.#api.tasks.approve(task_run_id, { question_id, answer: answered.answer });
      return true;
    } catch (error) {
      return this.#explain(error, question_id);
    }
  }

  #ask(question: ApprovalView): ReturnType<typeof ask> {
    this.#view.pause();
    return ask(question, this.#io, this.#leaving.signal);
  }

  /** Somebody else was faster, or the fields do not go together: then the question is looked at again. */
  #explain(error: unknown, question_id: string): boolean {
    if (!(error instanceof RelayError)) throw error;
    const isKnown = ['ALREADY_DECIDED', 'NOT_WAITING', 'INVALID_ANSWER'].includes(error.code);
    if (!isKnown) throw error;
    if (this.#mode === 'ask') this.#io.out.write(`  ${error.message}\n`);
    else this.#left.add(question_id);
    return this.#mode === 'ask';
  }
}

function sayYes(question: ApprovalView): { kind: 'approve'; answer?: unknown; reason?: never } | null {
  const filled = defaultAnswer(question.schema);
  return filled === null ? null : { kind: 'approve', answer: filled.answer };
}
