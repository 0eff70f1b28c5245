/**
 * Definitions that were checked lately, by their text: programs start the same workflow again and again. Only for values that
 * were read from JSON; a value made by code may hold what JSON would hide.
 */

import type { HandlerCatalog } from '../definition/handler-spec.ts';
import { checkWorkflowValue, requireWorkflow } from '../definition/load.ts';
import type { Workflow } from '../definition/workflow.ts';

const KEPT_MAX = 100;
const CHARS_MAX = 64 * 1024;

/** Checks definitions, and the same text only once. Handlers never change while a process runs. */
export class DefinitionCache {
  readonly #handlers: HandlerCatalog;
  readonly #known = new Map<string, Workflow>();

  constructor(handlers: HandlerCatalog) {
    this.#handlers = handlers;
  }

  /** The canonical workflow, or INVALID_WORKFLOW with all problems. */
  async check(definition: unknown): Promise<Workflow> {
    const text = JSON.stringify(definition);
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    const workflow = requireWorkflow(await checkWorkflowValue(definition, { handlers: this.#handlers }));
    if (text.length <= CHARS_MAX) this.#keep(text, workflow);
    return workflow;
  }

  #keep(text: string, workflow: Workflow): void {
    this.#known.set(text, workflow);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= KEPT_MAX) break;
      this.#known.delete(oldest);
    }
  }
}
