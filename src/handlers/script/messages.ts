/** What a worker and the process of a script say to each other. Everything is JSON, and what a script says is checked. */
import { z } from 'zod';
import type { HandlerContext } from '../handler.ts';

/** The first and only message to the script's process. */
export interface ScriptStart {
  /** Path of the bundle. */
  readonly file: string;
  readonly module: string;
  readonly exportName: string;
  readonly args: unknown;
  readonly task: HandlerContext<unknown>['task'];
  readonly workdir: string;
  readonly trace: HandlerContext<unknown>['trace'];
  readonly answers: Readonly<Record<string, unknown>>;
  readonly lastCheckpoint: unknown;
}

const question = z.object({
  key: z.string(),
  message: z.string(),
  schema: z.unknown().exactOptional(),
  timeout: z.string().exactOptional(),
  status: z.enum(['BLOCKED', 'WAITING_INPUT']).exactOptional(),
});

const scriptEnd = z.discriminatedUnion('type', [
  z.object({ type: z.literal('returned'), value: z.unknown().exactOptional() }),
  z.object({ type: z.literal('paused'), question }),
  z.object({ type: z.literal('not_json'), message: z.string() }),
  z.object({
    type: z.literal('threw'),
    name: z.string(),
    message: z.string(),
    stack: z.string(),
    delayMs: z.number().exactOptional(),
  }),
]);

const tokens = z.number().min(0).exactOptional();

/** What the script's process says while it runs, and at the end. A user's code can send anything, so it is parsed. */
export const scriptMessage = z.discriminatedUnion('type', [
  z.object({ type: z.literal('log'), text: z.string() }),
  z.object({ type: z.literal('progress'), fraction: z.number(), message: z.string().exactOptional() }),
  z.object({ type: z.literal('checkpoint'), value: z.unknown().exactOptional() }),
  z.object({
    type: z.literal('usage'),
    usage: z.object({
      tokens_in: tokens,
      tokens_out: tokens,
      tokens_cached: tokens,
      cost_usd: z.number().nullable().exactOptional(),
      model: z.string().exactOptional(),
    }),
  }),
  z.object({ type: z.literal('artifact'), name: z.string(), content_type: z.string(), base64: z.string() }),
  ...scriptEnd.options,
]);

/** A question as a script asks it. */
export type ScriptQuestion = z.output<typeof question>;
/** How the script's function ended. */
export type ScriptEnd = z.output<typeof scriptEnd>;
/** Anything the script's process says. */
export type ScriptMessage = z.output<typeof scriptMessage>;
