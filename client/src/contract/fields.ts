/** Fields that many routes share: ids, pages, times, labels. Everything has a bound. */
import { z } from 'zod';
import type { Immutable } from './route.ts';

/** Items of one page, at most. */
export const PAGE_MAX = 1_000;
const ID_CHARS_MAX = 200;
const TEXT_CHARS_MAX = 10_000;

export const id = z.string().min(1).max(ID_CHARS_MAX);
export const text = z.string().max(TEXT_CHARS_MAX);
export const time = z.string().describe('ISO 8601, UTC');
const cursor = z
  .string()
  .regex(/^\d{1,16}$/)
  .describe('where an earlier page ended');
const limit = z.int().min(1).max(PAGE_MAX).describe('items of a page');
export const labels = z.record(z.string().max(ID_CHARS_MAX), z.string().max(1_000));
export const idempotencyKey = z
  .string()
  .min(1)
  .max(ID_CHARS_MAX)
  .optional()
  .describe('repeating the request with the same key gives the first answer');
export const anyObject = z.record(z.string(), z.unknown());

/** The query of a list. */
export const paging = { cursor: cursor.optional(), limit: limit.optional() };
/** The query of a log. */
export const following = { after: cursor.optional(), limit: limit.optional() };
/** The query of events; a store spells their cursors as it likes. */
export const followingEvents = {
  after: z
    .string()
    .regex(/^[\w.:-]{1,100}$/)
    .optional()
    .describe('the cursor of the last event seen; 0 is the beginning'),
  limit: limit.optional(),
};

export const runParams = z.strictObject({ id });
export const taskParams = z.strictObject({ task_run_id: id });

/** A list and where it goes on; null is the end. */
export const pageOf = <Item extends z.ZodType>(item: Item) =>
  z.object({ items: z.array(item), next_cursor: z.string().nullable() });

/** A list and where it goes on; null is the end. */
export interface Page<Item> {
  readonly items: readonly Item[];
  readonly next_cursor: string | null;
}

const FAILURE_CLASSES = [
  'transport',
  'timeout',
  'http',
  'output',
  'budget',
  'limit',
  'template',
  'rejected',
  'worker_lost',
  'handler',
] as const;

export const taskFailure = z.object({
  class: z.enum(FAILURE_CLASSES),
  code: z.string().min(1).max(ID_CHARS_MAX),
  message: z.string(),
  attempt: z.exactOptional(z.int()),
  status: z.exactOptional(z.int()),
  provider_code: z.exactOptional(z.string()).describe('the word of a model provider for it'),
  retry_after_ms: z.exactOptional(z.number().min(0)),
  hint: z.exactOptional(z.string()),
});

const amount = z.number().min(0);
export const usage = z.object({
  tokens_in: z.exactOptional(amount),
  tokens_out: z.exactOptional(amount),
  tokens_cached: z.exactOptional(amount),
  cost_usd: z.exactOptional(amount.nullable()),
  model: z.exactOptional(z.string()),
  provider: z.exactOptional(z.string()),
  latency_ms: z.exactOptional(amount),
  prompt_hash: z.exactOptional(z.string()),
  finish: z.exactOptional(z.string()),
  models: z
    .exactOptional(
      z.record(
        z.string().max(ID_CHARS_MAX),
        z.object({
          calls: amount,
          tokens_in: amount,
          tokens_out: amount,
          tokens_cached: amount,
          cost_usd: amount.nullable(),
        }),
      ),
    )
    .describe('the same by provider/model'),
});

export const errorShape = z.object({
  error: z.object({
    code: z.string(),
    message: z.string(),
    hint: z.string(),
    details: z.unknown().optional(),
  }),
});

/** The shape of every error. */
export type ErrorShape = Immutable<z.output<typeof errorShape>>;
