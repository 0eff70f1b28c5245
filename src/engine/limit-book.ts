/**
 * What this process knows of the named limits without asking: their definitions, and which of them hold tasks back. Both may be
 * a moment old. Whether there is room is never decided by it: that is counted under the lock of the limit (`limit-ledger.ts`).
 */
import { RelayError } from '../base/errors.ts';
import { didYouMean } from '../base/suggest.ts';
import { type Limit, type LimitDefinition, matchesModel, toLimit } from '../domain/limits.ts';
import type { Store, Tx } from '../stores/store.ts';

/** The limits as they were when they were last looked at. */
export class LimitBook {
  #limits: ReadonlyMap<string, Limit> = new Map();
  /** Places that held something back. */
  #crowded: Set<string> = new Set();
  #isLoaded = false;

  /** Reads the limits once, before anything is decided by them. */
  async ensure(tx: Tx): Promise<void> {
    if (!this.#isLoaded) await this.#load(tx);
  }

  /** Looks again. */
  async refresh(store: Store): Promise<void> {
    await store.read((tx) => this.#load(tx));
  }

  get size(): number {
    return this.#limits.size;
  }

  /** Whether some limit may hold tasks back. */
  get hasHeld(): boolean {
    return this.#crowded.size > 0;
  }

  /** Whether a place holds others back already, so that whoever comes now stands behind them. */
  isCrowded(place: string): boolean {
    return this.#crowded.has(place);
  }

  /** A task was held back here. */
  note(place: string): void {
    if (this.#limits.has(place)) this.#crowded.add(place);
  }

  /** Whether calls of models count against some limit that no task names. */
  get hasModels(): boolean {
    for (const { models } of this.#limits.values()) if (models.length > 0) return true;
    return false;
  }

  /** The limits whose patterns fit one of these models. */
  matching(models: readonly string[]): readonly string[] {
    return [...this.#limits].flatMap(([name, limit]) => {
      const fits = limit.models.some((pattern) => models.some((model) => matchesModel(pattern, model)));
      return fits ? [name] : [];
    });
  }

  /** Refuses names that nobody has configured: a limit that is ignored in silence is none. */
  require(task_id: string, names: readonly string[]): void {
    const unknown = names.find((name) => !this.#limits.has(name));
    if (unknown === undefined) return;
    const message = `task \`${task_id}\` names the limit \`${unknown}\`, which is not configured`;
    const hint = didYouMean(unknown, [...this.#limits.keys()]);
    throw new RelayError('UNKNOWN_LIMIT', message, hint === null ? {} : { hint });
  }

  async #load(tx: Tx): Promise<void> {
    const rows = await tx.limits.all();
    this.#limits = new Map(
      rows.map(({ name, definition }) => [name, toLimit(JSON.parse(definition) as LimitDefinition)]),
    );
    this.#crowded = new Set(rows.length === 0 ? [] : await tx.held.limits('all'));
    this.#isLoaded = true;
  }
}
