/** Durations in schemas: one spelling rule for the workflow file and for every handler's config. */
import { z } from 'zod';
import { DURATION_PATTERN, formatDuration, parseDuration } from '../base/duration.ts';

const refused = (message: string): { message: string; params: { problem: 'bad_duration' } } => ({
  message,
  params: { problem: 'bad_duration' },
});

/** A duration as people write it. */
export const durationText = z
  .string()
  .regex(new RegExp(DURATION_PATTERN), { abort: true })
  .refine((text) => parseDuration(text) !== null, { ...refused('is longer than ten years'), abort: true })
  .describe('500ms, 30s, 5m, 2h or 1d');

/** A duration that must pass: a timeout of nothing would end what it bounds before it starts. */
export const timeoutText = durationText.refine((text) => parseDuration(text) !== 0, {
  ...refused('must be longer than nothing'),
  abort: true,
});

/** Parsed to its one spelling, so that `60s` and `1m` are the same workflow. */
export const duration = durationText.transform(canonical).describe('500ms, 30s, 5m, 2h or 1d');

/** A timeout in its one spelling. */
export const timeout = timeoutText.transform(canonical).describe('500ms, 30s, 5m, 2h or 1d');

function canonical(text: string): string {
  return formatDuration(parseDuration(text) ?? 0);
}
