/**
 * The model providers of this process: built-in ones, those of the config, and the keys of the environment. Adding a wire is a file
 * and a line here. A wire is loaded by its first call: commands that ask no model do not pay for them.
 */
import { didYouMean } from '../base/suggest.ts';
import type { ModelProvider, ModelRequest } from './model.ts';
import { type ModelPrice, type PriceOverrides, priceOf } from './pricing.ts';
import { kindOf, type ProviderKind, type ProviderSettings } from './provider-settings.ts';
import type { Connection, Wire } from './wires/wire.ts';

/** What models are found with. */
export interface ModelSettings {
  readonly providers: Readonly<Record<string, ProviderSettings>>;
  readonly prices: PriceOverrides;
  /** The environment of the worker, which has the keys. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** A provider with the name of one of its models, or why it cannot be asked and what to do. */
type FoundModel =
  | { readonly ok: true; readonly provider: ModelProvider; readonly model: string }
  | { readonly ok: false; readonly message: string; readonly hint: string };

/** The models that can be asked, and what they cost. */
export interface Models {
  /** Finds the provider that a reference such as `openai/gpt-5-mini` names. */
  find(reference: string): FoundModel;
  price(reference: string): ModelPrice | null;
  /** Keys of the environment that must not be stored or shown anywhere. */
  readonly keys: readonly string[];
}

const KINDS: Readonly<
  Record<ProviderKind, { readonly baseUrl: string; readonly keyName: string | null; load(): Promise<Wire> }>
> = Object.freeze({
  openai: {
    baseUrl: 'https://api.openai.com/v1',
    keyName: 'OPENAI_API_KEY',
    load: async () => (await import('./wires/openai.ts')).openai,
  },
  anthropic: {
    baseUrl: 'https://api.anthropic.com/v1',
    keyName: 'ANTHROPIC_API_KEY',
    load: async () => (await import('./wires/anthropic.ts')).anthropic,
  },
  google: {
    baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
    keyName: 'GOOGLE_GENERATIVE_AI_API_KEY',
    load: async () => (await import('./wires/google.ts')).google,
  },
  openai_compatible: {
    baseUrl: '',
    keyName: null,
    load: async () => (await import('./wires/openai.ts')).openaiCompatible,
  },
});

const OFFLINE: ModelProvider = Object.freeze({
  name: 'offline',
  generate: async (request: ModelRequest) => (await import('./offline.ts')).offline.generate(request),
});

const BUILT_IN = { openai: {}, anthropic: {}, google: {} } as const;
/** What a header can carry. */
const SENDABLE = /^[\x21-\x7e]+$/;

/** The models of these settings. */
export function createModels({ providers: own, prices, env }: ModelSettings): Models {
  const settings: ReadonlyMap<string, ProviderSettings> = new Map(Object.entries({ ...BUILT_IN, ...own }));
  const names = [OFFLINE.name, ...settings.keys()];
  return {
    find: (reference) => {
      const slash = reference.indexOf('/');
      const name = reference.slice(0, Math.max(slash, 0));
      const model = reference.slice(slash + 1);
      if (name === OFFLINE.name) return { ok: true, provider: OFFLINE, model };
      const found = settings.get(name);
      const kind = found === undefined ? null : kindOf(name, found);
      if (found === undefined || kind === null) return { ok: false, ...unknownProvider(name, names) };
      const key = readKey(name, keyNameOf(kind, found), env);
      if ('message' in key) return { ok: false, ...key };
      return { ok: true, provider: providerOf(kind, { name, ...key, ...connect(kind, found) }), model };
    },
    price: (reference) => priceOf(reference, prices) ?? priceOf(inItsKind(reference, settings)),
    keys: [...settings].flatMap(([name, each]) => {
      const kind = kindOf(name, each);
      const keyName = kind === null ? null : keyNameOf(kind, each);
      const value = keyName === null ? undefined : env[keyName];
      // A key is sent without the line end that a file has left on it; both spellings are kept secret.
      return value === undefined ? [] : [value, value.trim()].filter((text) => text !== '');
    }),
  };
}

/** Another name for a built-in provider, such as a second key, has its prices: `work/gpt-5` costs what `openai/gpt-5` costs. */
function inItsKind(reference: string, settings: ReadonlyMap<string, ProviderSettings>): string {
  const [name = ''] = reference.split('/', 1);
  const kind = kindOf(name, settings.get(name) ?? {});
  return kind === null || kind === 'openai_compatible' ? reference : kind + reference.slice(name.length);
}

function keyNameOf(kind: ProviderKind, { api_key_env }: ProviderSettings): string | null {
  return api_key_env ?? KINDS[kind].keyName;
}

type Key = Pick<Connection, 'key' | 'keyName'> | { readonly message: string; readonly hint: string };

function readKey(name: string, keyName: string | null, env: ModelSettings['env']): Key {
  if (keyName === null) return { key: null, keyName };
  const key = env[keyName]?.trim() ?? '';
  if (key === '')
    return {
      message: `the provider \`${name}\` has no key: ${keyName} is not set in the environment of the worker`,
      hint: `Set ${keyName} there, or name another variable with \`providers.${name}.api_key_env\` in the config.`,
    };
  if (!SENDABLE.test(key))
    return {
      message: `${keyName} is not a key: it has spaces, line ends or other characters that cannot be sent`,
      hint: `Set ${keyName} to the key itself, without quotes or a name before it.`,
    };
  return { key, keyName };
}

function connect(
  kind: ProviderKind,
  settings: ProviderSettings,
): Omit<Connection, 'name' | 'key' | 'keyName'> {
  const { base_url = KINDS[kind].baseUrl, structured_output = 'none', stream_usage = true } = settings;
  return {
    baseUrl: base_url.replace(/\/+$/, ''),
    structuredOutput: structured_output,
    isStreamCounted: stream_usage,
  };
}

function providerOf(kind: ProviderKind, connection: Connection): ModelProvider {
  return {
    name: connection.name,
    generate: async (request) => {
      const wire = await KINDS[kind].load();
      const { ask } = await import('./wires/ask.ts');
      return ask({ wire, connection, request });
    },
  };
}

function unknownProvider(name: string, names: readonly string[]): { message: string; hint: string } {
  const hint = didYouMean(name, names) ?? `add it to \`providers\` of the config`;
  return { message: `there is no model provider \`${name}\`; known: ${names.join(', ')}`, hint };
}
