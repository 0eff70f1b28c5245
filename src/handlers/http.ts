/** `http`: one HTTP request (SPEC S9.3). */
import { z } from 'zod';
import { timeoutText } from '../definition/duration-schema.ts';
import { defineHandler } from './handler.ts';

const scalar = z.union([z.string(), z.number(), z.boolean()]);

const config = z
  .strictObject({
    url: z.string().min(1).describe('absolute, http or https'),
    method: z
      .enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
      .optional()
      .describe('default GET, or POST when there is a body'),
    headers: z.record(z.string(), scalar).optional().describe('request headers'),
    query: z
      .record(z.string(), z.union([scalar, z.array(scalar)]))
      .optional()
      .describe('added to the URL, encoded; a list repeats its key'),
    json: z.unknown().optional().describe('the body as JSON'),
    body: z.string().optional().describe('the body as text'),
    expect: z.array(z.int().min(100).max(599)).min(1).optional().describe('accepted statuses; default 2xx'),
    parse: z.enum(['auto', 'json', 'text']).optional().describe('default auto: JSON when it is called so'),
    request_timeout: timeoutText.optional().describe('of one request; default 60s'),
  })
  .refine((value) => value.json === undefined || value.body === undefined, {
    message: 'give either `json` or `body`, not both',
  });

/** The config of an `http` task after rendering. */
export type HttpConfig = z.output<typeof config>;

/** Sends one request. */
export const http = defineHandler<HttpConfig>({
  name: 'http',
  aliases: ['http_request', 'call_external_service'],
  summary: 'Sends one HTTP request; the output is { status, headers, body }.',
  config,
  run: async (context) => (await import('./http/run-http.ts')).runHttp(context),
});
