/** What is wrong with a part of a request, in the words of the contract itself: the same for every way a request can come. */
import type { z } from 'zod';
import type { Route } from '#client';
import { RelayError } from '../base/errors.ts';

/** The parts of a request. */
export type RequestPart = 'params' | 'query' | 'body';

const NAMES: Readonly<Record<RequestPart, string>> = {
  params: 'the path',
  query: 'the query',
  body: 'the body',
};
const PROBLEMS_MAX = 10;

/** Throws USAGE unless the part fits the contract. */
export function checkPart(route: Route, part: RequestPart, value: unknown): void {
  const { success, error } = route[part].safeParse(value);
  if (!success) throw misfit(part, error);
}

/** The error of a part that does not fit. */
export function misfit(part: RequestPart, error: z.ZodError): RelayError {
  const problems = error.issues.slice(0, PROBLEMS_MAX).map(describe);
  return new RelayError('USAGE', `${NAMES[part]} is not what the route takes: ${problems[0] ?? 'unknown'}`, {
    hint: 'see /openapi.json or /docs for the shape of every request',
    details: { errors: problems },
  });
}

function describe({ path, message }: z.core.$ZodIssue): string {
  const text = message.charAt(0).toLowerCase() + message.slice(1);
  return path.length === 0 ? text : `\`${path.join('.')}\`: ${text}`;
}
