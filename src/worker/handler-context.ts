/** What a handler sees of its attempt. Built for every attempt, so it is cheap; its functions may be taken out of it. */
import type { Clock } from '../base/clock.ts';
import { parseDuration } from '../base/duration.ts';
import { maskValues } from '../base/redact.ts';
import type { TraceContext } from '../base/trace.ts';
import { type HandlerContext, TerminalError } from '../handlers/handler.ts';
import type { Attempt } from './attempt.ts';
import { PauseSignal } from './pause-signal.ts';
import type { LogChunk } from './work-source.ts';

/** What all attempts of a worker share. */
export interface ContextHost {
  readonly clock: Clock;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Where handlers work when the run did not come from a file. */
  readonly workdir: string;
  readonly redact: (text: string) => string;
  log(attempt: Attempt, stream: LogChunk['stream'], text: string): void;
  /** An attempt has told how far it is. */
  readonly onProgress?: () => void;
}

/** The context of one attempt. */
export function createContext<Config>(
  attempt: Attempt,
  config: Config,
  host: ContextHost,
): HandlerContext<Config> {
  return new AttemptContext(attempt, config, host);
}

/**
 * Everything but the config is made when it is looked at, because most handlers look at little. Functions come out of getters,
 * so that `const { log } = context` works.
 */
class AttemptContext<Config> implements HandlerContext<Config> {
  readonly config: Config;
  readonly #attempt: Attempt;
  readonly #host: ContextHost;

  constructor(attempt: Attempt, config: Config, host: ContextHost) {
    this.config = config;
    this.#attempt = attempt;
    this.#host = host;
  }

  get task(): HandlerContext<Config>['task'] {
    const { run_id, task_run_id, task_id, map_index, attempt } = this.#attempt.lease;
    return { run_id, task_run_id, task_id, map_index, attempt };
  }

  get output(): HandlerContext<Config>['output'] {
    return this.#attempt.lease.output;
  }

  get signal(): AbortSignal {
    return this.#attempt.signal;
  }

  get workdir(): string {
    return this.#attempt.lease.workdir ?? this.#host.workdir;
  }

  get env(): HandlerContext<Config>['env'] {
    return this.#host.env;
  }

  get trace(): TraceContext {
    return this.#attempt.trace;
  }

  get clock(): Clock {
    return this.#host.clock;
  }

  get lastCheckpoint(): unknown {
    return this.#attempt.lease.checkpoint ?? undefined;
  }

  get answers(): HandlerContext<Config>['answers'] {
    return this.#attempt.lease.answers;
  }

  get redact(): HandlerContext<Config>['redact'] {
    const { secrets = [] } = this.#attempt.lease;
    return (text) => this.#host.redact(maskValues(text, secrets));
  }

  get log(): HandlerContext<Config>['log'] {
    return (text, stream = 'log') => this.#host.log(this.#attempt, stream, text);
  }

  get progress(): HandlerContext<Config>['progress'] {
    return (fraction, message) => {
      if (Number.isNaN(fraction)) return;
      const progress = Math.min(Math.max(fraction, 0), 1);
      const said = message === undefined ? {} : { message: this.#host.redact(message) };
      this.#attempt.tell({ progress, ...said });
      this.#host.onProgress?.();
    };
  }

  get checkpoint(): HandlerContext<Config>['checkpoint'] {
    return (checkpoint) => this.#attempt.tell({ checkpoint });
  }

  get usage(): HandlerContext<Config>['usage'] {
    return (usage) => this.#attempt.addUsage(usage);
  }

  get artifact(): HandlerContext<Config>['artifact'] {
    return (artifact) => this.#attempt.addArtifact(artifact);
  }

  get ask(): HandlerContext<Config>['ask'] {
    return (question) => {
      const { answers } = this.#attempt.lease;
      if (Object.hasOwn(answers, question.key)) return answers[question.key];
      const { timeout } = question;
      if (timeout !== undefined && parseDuration(timeout) === null)
        throw new TerminalError(
          `\`timeout\` of the question \`${question.key}\` is not a duration: ${timeout}`,
        );
      this.#attempt.question = question;
      throw new PauseSignal();
    };
  }
}
