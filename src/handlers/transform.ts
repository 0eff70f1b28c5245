/** `transform`: the rendered value is the output (SPEC S9.3). */
import { z } from 'zod';
import { defineHandler } from './handler.ts';

const config = z
  .strictObject({ value: z.unknown().describe('any value; templates in it are rendered') })
  .refine((value) => Object.hasOwn(value, 'value'), { message: '`value` is missing' });

/** Gives its rendered value back. */
export const transform = defineHandler({
  name: 'transform',
  summary: 'Shapes data: the rendered value is the output.',
  config,
  run: async ({ config: { value } }) => value,
});
