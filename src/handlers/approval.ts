/** `approval`: a person says yes or no, and both are a success (SPEC S9.3). */
import { z } from 'zod';
import { timeoutText } from '../definition/duration-schema.ts';
import type { HandlerSpec } from '../definition/handler-spec.ts';

const config = z.strictObject({
  message: z.string().min(1).describe('what the person is asked'),
  form: z.record(z.string(), z.unknown()).optional().describe('JSON Schema of the answer'),
  timeout: timeoutText.optional().describe('how long to wait for an answer; default for ever'),
  on_timeout: z.enum(['approve', 'reject']).optional().describe('what silence means; default reject'),
});

/** Asks a person; the engine settles it. */
export const approval: HandlerSpec = Object.freeze({
  name: 'approval',
  summary: 'Asks a person; the output is { approved, by, answer }.',
  config,
  settledBy: 'person',
});
