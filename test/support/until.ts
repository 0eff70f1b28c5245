/** Waiting without sleeping: the event loop turns until something holds. */

const TURNS_MAX = 100_000;

/** Resolves when the condition holds; fails after very many turns of the event loop. */
export async function until(condition: () => boolean, what = 'the condition'): Promise<void> {
  for (let turn = 0; turn < TURNS_MAX; turn++) {
    if (condition()) return;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  throw new TypeError(`${what} did not come true`);
}

/** Lets everything happen that needs no outside event. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}
