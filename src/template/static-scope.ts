/**
 * Which names a template binds itself, decided while compiling. Every bound name has a numbered slot; a name that only some branch
 * has set falls through to the scope outside at run time, as in Jinja2. Work is proportional to what is set, never to what is known.
 */

/** Names bound in one block. Loops and captures open a block of their own; `if` does not. */
export interface StaticScope {
  readonly parent: StaticScope | null;
  readonly slots: Map<string, number>;
  /** Names surely set by now, one layer for each open branch of an `if`. */
  readonly layers: Set<string>[];
}

/** Where a name may be found: slots to look into, inner first, and whether one of them surely has it. */
interface Binding {
  readonly slots: readonly number[];
  readonly isCertain: boolean;
}

/** A block inside another. */
export function openScope(parent: StaticScope | null): StaticScope {
  return { parent, slots: new Map(), layers: [new Set()] };
}

/** Records that a name is set from here on; `nextSlot` gives a new slot when the block has none for it. */
export function bindName(scope: StaticScope, name: string, nextSlot: () => number): number {
  const slot = scope.slots.get(name) ?? nextSlot();
  scope.slots.set(name, slot);
  scope.layers.at(-1)?.add(name);
  return slot;
}

/** Finds a name from a block outward. */
export function findName(scope: StaticScope, name: string): Binding {
  const slots: number[] = [];
  for (let block: StaticScope | null = scope; block !== null; block = block.parent) {
    const slot = block.slots.get(name);
    if (slot === undefined) continue;
    slots.push(slot);
    if (block.layers.some((layer) => layer.has(name))) return { slots, isCertain: true };
  }
  return { slots, isCertain: false };
}

/** Runs one branch of an `if` and tells which names it surely sets. */
export function inBranch(scope: StaticScope, run: () => void): ReadonlySet<string> {
  const layer = new Set<string>();
  scope.layers.push(layer);
  run();
  scope.layers.pop();
  return layer;
}

/** After an `if` with an `else`: what every branch has set is set. */
export function joinBranches(scope: StaticScope, branches: readonly ReadonlySet<string>[]): void {
  const [first, ...others] = branches;
  for (const name of first ?? []) {
    if (others.every((branch) => branch.has(name))) scope.layers.at(-1)?.add(name);
  }
}
