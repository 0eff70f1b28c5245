/** What the config says about providers and prices (SPEC S9.1): shapes only, so that reading a config loads no provider. */
import { z } from 'zod';

/** The wires that are spoken. */
const KINDS = ['openai', 'anthropic', 'google', 'openai_compatible'] as const;

/** How a provider is talked to. */
export type ProviderKind = (typeof KINDS)[number];

const provider = z.strictObject({
  kind: z.enum(KINDS).optional(),
  base_url: z
    .string()
    .regex(/^https?:\/\/[^\s]+$/)
    .refine((url) => URL.canParse(url))
    .optional(),
  api_key_env: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/)
    .optional(),
  structured_output: z.enum(['json_schema', 'json_object', 'none']).optional(),
  stream_usage: z.boolean().optional(),
});

/** What the config says about one provider. */
export type ProviderSettings = z.output<typeof provider>;

/** `providers` of the config, by name. A built-in name changes the built-in provider. */
export const providersSchema = z
  .record(z.string().regex(/^[a-z0-9_-]+$/i, 'must be letters, digits, _ and -'), provider)
  .superRefine((providers, context) => {
    for (const [name, settings] of Object.entries(providers)) {
      const problem = problemOf(name, settings);
      if (problem !== null) context.addIssue({ code: 'custom', path: [name], message: problem });
    }
  });

const amount = z.number().min(0).max(1_000_000);

/** `prices` of the config: USD for a million tokens, by `provider/model`. */
export const pricesSchema = z.record(
  z.string().regex(/^[a-z0-9_-]+\/.+$/i, 'must be written as provider/model'),
  z.strictObject({ input: amount, output: amount, cached_input: amount.nullable().default(null) }),
);

/** The kind of a provider: what it says, or what its name says. */
export function kindOf(name: string, { kind }: ProviderSettings): ProviderKind | null {
  return kind ?? KINDS.find((each) => each === name) ?? null;
}

function problemOf(name: string, settings: ProviderSettings): string | null {
  if (name === 'offline') return '`offline` is built in and has no settings';
  const kind = kindOf(name, settings);
  if (kind === null) return `\`providers.${name}\` needs a \`kind\`: ${KINDS.join(', ')}`;
  if (kind === 'openai_compatible' && settings.base_url === undefined)
    return `\`providers.${name}\` is openai_compatible and needs a \`base_url\``;
  const own = (['structured_output', 'stream_usage'] as const).find((key) => settings[key] !== undefined);
  if (kind !== 'openai_compatible' && own !== undefined)
    return `\`${own}\` is for openai_compatible; what ${kind} can do is known`;
  return null;
}
