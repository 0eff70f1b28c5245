/** Named limits in the config file (SPEC S8.1). */
import { z } from 'zod';
import { type LimitDefinition, parseRate } from '../domain/limits.ts';

const count = z.int().min(1).max(1e12);

const limit = z.strictObject({
  concurrency: count.optional().describe('attempts at once'),
  rate: z
    .string()
    .refine((text) => parseRate(text) !== null, {
      message: 'must be a count and a time of at most a day, such as 100/1m',
    })
    .optional()
    .describe('requests in any stretch of time, such as 100/1m'),
  requests_per_minute: count.optional().describe('requests in any minute'),
  tokens_per_minute: count.optional().describe('tokens in any minute, in and out'),
  models: z
    .array(z.string().min(1).max(200))
    .max(100)
    .optional()
    .describe('models whose calls count, such as openai/*'),
});

/** The key `limits` of the config file. */
export const limitsConfig = z.record(
  z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, 'must be letters, digits, `.`, `_` and `-`, at most 64'),
  limit,
);

/** The limits without what was left out. */
export function toLimitDefinitions(
  limits: z.output<typeof limitsConfig> = {},
): Readonly<Record<string, LimitDefinition>> {
  return Object.fromEntries(
    Object.entries(limits).map(([name, written]) => [
      name,
      Object.fromEntries(Object.entries(written).filter(([, value]) => value !== undefined)),
    ]),
  );
}
