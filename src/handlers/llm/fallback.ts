/**
 * When another model is asked, and what is told when all have failed (SPEC S9.1). The next one is asked when this one is out of reach:
 * network, time, a busy or broken provider, a model that is gone. A wrong key, a bad request or a wrong answer is a mistake to mend,
 * which another model would only hide, and pay for.
 */
import { invariant } from '../../base/invariant.ts';
import { AttemptFailure } from '../../domain/attempt-failure.ts';
import { classify } from '../../domain/failure.ts';

/** The model is not there (any more), which is no fault of the request. */
const GONE: ReadonlySet<number> = new Set([404, 410]);

/** Whether the next model is asked after this failure. */
export function isOutOfReach({ facts }: AttemptFailure): boolean {
  if (facts.kind === 'output') return false;
  if (facts.kind === 'http' && GONE.has(facts.status)) return true;
  return facts.kind === 'network' || classify(facts).retryable;
}

/**
 * The failure of the whole chain. Where one of the models may do better later the attempt is worth another try, as soon as the first of
 * them may be asked again; the message tells of all.
 */
export function failureOf(failures: readonly AttemptFailure[]): AttemptFailure {
  const last = failures.at(-1);
  invariant(last !== undefined, 'a chain fails by its models');
  const waitMs = ({ extra }: AttemptFailure): number => extra.retryAfterMs ?? 0;
  const [best] = failures
    .filter(({ facts }) => classify(facts).retryable)
    .sort((a, b) => waitMs(a) - waitMs(b));
  if (best === undefined || failures.length === 1) return last;
  const others = failures.filter((each) => each !== best);
  const message = [best, ...others].map((each) => each.message).join('; then ');
  return new AttemptFailure(best.facts, message, { ...best.extra, cause: best });
}
