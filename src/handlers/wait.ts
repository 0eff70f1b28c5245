/** `wait`: time passes, no worker is held (SPEC S9.3). */
import { z } from 'zod';
import { durationText } from '../definition/duration-schema.ts';
import type { HandlerSpec } from '../definition/handler-spec.ts';

const config = z
  .strictObject({
    for: durationText.optional().describe('how long'),
    until: z.iso.datetime({ offset: true }).optional().describe('until when, ISO 8601'),
  })
  .refine((value) => (value.for === undefined) !== (value.until === undefined), {
    message: 'give either `for` or `until`',
  });

/** Lets time pass; the engine settles it. */
export const wait: HandlerSpec = Object.freeze({
  name: 'wait',
  summary: 'Waits for a duration or until a moment.',
  config,
  settledBy: 'timer',
});
