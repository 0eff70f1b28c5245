/** How `ctx.ask` ends an attempt that has to wait for a person. It never leaves the worker. */

/** Thrown by `ask` when there is no answer yet. */
export class PauseSignal extends Error {
  override readonly name = 'PauseSignal';

  constructor() {
    super('the task waits for an answer');
  }
}
