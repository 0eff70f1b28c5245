/** Assertions for bugs. A failed invariant means our code is wrong; operating errors are `RelayError`. */

/** A broken promise inside Relay: never caused by a user's input, always worth a report. */
export class InvariantError extends Error {
  override readonly name = 'InvariantError';
}

/** Stops when `condition` does not hold; `message` says which promise was broken. */
export function invariant(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(`invariant broken: ${message}`);
}

/** Marks a branch that the types rule out; reaching it is a bug. */
export function unreachable(value: never): never {
  throw new InvariantError(`unreachable value: ${String(value)}`);
}
