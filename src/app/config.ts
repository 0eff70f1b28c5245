/** Settings (SPEC S14.2): flag > RELAY_* > file > default. One table of keys gives validation, `relay config` and the example file. */
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { z } from 'zod';
import { DURATION_PATTERN } from '../base/duration.ts';
import { RelayError } from '../base/errors.ts';
import { DEFINITION_LIMITS, type DefinitionLimits, MAP_ITEMS_MAX } from '../base/limits.ts';
import { LOG_LEVELS } from '../base/logger.ts';
import { nearest } from '../base/suggest.ts';
import { parseSource } from '../definition/document.ts';
import { type Finding, type Locate, Problems } from '../definition/problem.ts';
import { checkShape } from '../definition/schema-problems.ts';
import { pricesSchema, providersSchema } from '../models/provider-settings.ts';
import { limitsConfig } from './limit-config.ts';
import { readTextFile } from './workflow-file.ts';

const CONFIG_BYTES_MAX = 1024 * 1024;

const bound = (value: number, what: string) => z.int().min(1).default(value).describe(what);
const definitionLimits = z
  .strictObject({
    tasks_max: bound(DEFINITION_LIMITS.tasksMax, 'tasks of one workflow'),
    task_config_bytes_max: bound(DEFINITION_LIMITS.taskConfigBytesMax, 'bytes of `with` of one task'),
    file_bytes_max: bound(DEFINITION_LIMITS.fileBytesMax, 'bytes of one file'),
  })
  .prefault({});

const blobs = z
  .discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('files') }),
    z.strictObject({
      kind: z.literal('s3'),
      endpoint: z.string().regex(/^https?:\/\/.+$/),
      bucket: z.string().min(1),
      region: z.string().min(1).default('us-east-1'),
      access_key_env: z.string().min(1).default('AWS_ACCESS_KEY_ID'),
      secret_key_env: z.string().min(1).default('AWS_SECRET_ACCESS_KEY'),
      prefix: z.string().default(''),
    }),
  ])
  .prefault({ kind: 'files' });

const STORE_RULE = 'sqlite:PATH or postgres://…';
const BROKER_RULE = 'none, redis://… or amqp://…';
const SERVER_RULE = 'http://… or https://…';
const TOKEN_RULE = 'text of at least 8 characters';

const configSchema = z.strictObject({
  data: z.string().min(1).default('.relay').describe('folder of the embedded store, blobs and the token'),
  store: z
    .string()
    .regex(/^(sqlite:.+|postgres(ql)?:\/\/.+)$/)
    .optional()
    .describe(`${STORE_RULE}; default: relay.db in the data folder`),
  blobs: blobs.describe(
    'where outputs and files above 256 KiB are kept: files in the data folder, or an S3-compatible bucket: ' +
      '{kind: s3, endpoint, bucket, region, access_key_env, secret_key_env, prefix}',
  ),
  broker: z
    .string()
    .regex(/^(none|rediss?:\/\/.+|amqps?:\/\/.+)$/)
    .default('none')
    .describe(BROKER_RULE),
  server: z
    .string()
    .regex(/^https?:\/\/.+$/)
    .optional()
    .describe('URL of a Relay server that commands talk to'),
  token: z
    .string()
    .min(8)
    .optional()
    .describe('token for the server; better kept in RELAY_TOKEN than in a file'),
  retention: z
    .string()
    .regex(new RegExp(DURATION_PATTERN))
    .optional()
    .describe('how long finished runs are kept, such as 30d; default: for ever'),
  limits: limitsConfig
    .optional()
    .describe('named limits, such as {gpu: {concurrency: 2}, mail: {rate: 100/1m}}'),
  log: z.enum(LOG_LEVELS).default('warn').describe('debug, info, warn, error or silent; logs go to stderr'),
  map_items_max: bound(MAP_ITEMS_MAX, 'items that one `for_each` may have'),
  definition_limits: definitionLimits.describe('bounds of a workflow definition'),
  providers: providersSchema
    .default({})
    .describe(
      'model providers by name, such as {lab: {kind: openai_compatible, base_url: "http://127.0.0.1:8000/v1", api_key_env: LAB_KEY}}',
    ),
  prices: pricesSchema
    .default({})
    .describe(
      'USD for a million tokens by model, such as {lab/small: {input: 0.1, output: 0.4, cached_input: 0.05}}',
    ),
});

/** What keys that may hold a password must be; their wrong values are never repeated in a message. */
const SECRET_RULES: Readonly<Record<string, string>> = {
  store: STORE_RULE,
  broker: BROKER_RULE,
  server: SERVER_RULE,
  token: TOKEN_RULE,
  'providers.api_key_env': 'the name of an environment variable, not a key',
  'providers.base_url': `${SERVER_RULE}, with the version in it: https://api.example.org/v1`,
};

/** All settings, with defaults filled in. */
export type Config = z.output<typeof configSchema>;
/** A top-level key of the config file. */
export type ConfigKey = keyof Config;

/** The keys of the config file, in the order of the example. */
export const CONFIG_KEYS = Object.keys(configSchema.shape) as readonly ConfigKey[];

const SCALAR_KEYS = ['data', 'store', 'broker', 'server', 'token', 'log'] as const satisfies ConfigKey[];
type ScalarKey = (typeof SCALAR_KEYS)[number];

/** Where the settings come from. */
export interface ConfigSources {
  readonly flags: Readonly<Partial<Record<ScalarKey | 'config', string | undefined>>>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

/** The settings in force, the origin of each, and what a person should hear about. */
export interface LoadedConfig {
  readonly config: Config;
  readonly origins: Readonly<Record<ConfigKey, string>>;
  readonly warnings: readonly string[];
}

/** Reads flags, environment and file into one checked result. */
export function loadConfig(sources: ConfigSources): LoadedConfig {
  const file = readConfigFile(sources);
  const values: Record<string, unknown> = { ...file.values };
  const origins: Record<string, string> = {};
  for (const key of CONFIG_KEYS) origins[key] = key in file.values ? file.name : 'default';
  for (const key of SCALAR_KEYS) {
    const fromEnv = sources.env[envName(key)];
    const fromFlag = sources.flags[key];
    if (fromEnv !== undefined && fromEnv !== '') [values[key], origins[key]] = [fromEnv, envName(key)];
    if (fromFlag !== undefined) [values[key], origins[key]] = [fromFlag, `--${key}`];
  }
  const { data, findings } = checkShape(configSchema, values);
  if (findings !== null) throw invalidConfig(findings, { origins, file });
  const warnings = [...file.warnings, ...unknownVariables(sources.env)];
  return { config: data, origins: origins as Record<ConfigKey, string>, warnings };
}

/** The bounds of a definition in the words of the code. */
export function toDefinitionLimits(config: Config): DefinitionLimits {
  const { tasks_max, task_config_bytes_max, file_bytes_max } = config.definition_limits;
  return { tasksMax: tasks_max, taskConfigBytesMax: task_config_bytes_max, fileBytesMax: file_bytes_max };
}

/** A copy that may be shown: tokens and passwords are starred out. */
export function maskConfig(config: Config): Config {
  const { token, store, server, broker, providers } = config;
  const shown = Object.entries(providers).map(([name, { base_url, ...rest }]) => [
    name,
    base_url === undefined ? rest : { ...rest, base_url: maskUrl(base_url) },
  ]);
  return {
    ...config,
    ...(token === undefined ? {} : { token: '***' }),
    ...(store === undefined ? {} : { store: maskUrl(store) }),
    ...(server === undefined ? {} : { server: maskUrl(server) }),
    broker: maskUrl(broker),
    providers: Object.fromEntries(shown) as Config['providers'],
  };
}

/** Hides the password before the last `@`, and parameters that are named like one. */
export function maskUrl(url: string): string {
  return url
    .replace(/^([a-z+]+:\/\/[^/?#:@]*:).*@/i, '$1***@')
    .replace(/([?&][^=&]*(?:password|token|secret|key)[^=&]*=)[^&]*/gi, '$1***');
}

/** A commented file with every setting at its default. */
export function exampleConfig(): string {
  const lines = ['# Relay settings. A flag or a RELAY_* variable wins over this file.', ''];
  const defaults: Record<string, unknown> = configSchema.parse({});
  for (const [key, schema] of Object.entries(configSchema.shape)) {
    const value = defaults[key];
    lines.push(`# ${schema.description}`);
    if (typeof value === 'object') {
      if (Object.keys(value ?? {}).length === 0) lines.push(`# ${key}: {}`);
      else
        lines.push(`# ${key}:`, ...Object.entries(value ?? {}).map(([name, item]) => `#   ${name}: ${item}`));
    } else lines.push(`# ${key}: ${value ?? ''}`.trimEnd());
    lines.push('');
  }
  return lines.join('\n');
}

interface ConfigFile {
  readonly name: string;
  readonly values: Readonly<Record<string, unknown>>;
  readonly locate: Locate;
  readonly warnings: readonly string[];
}

const NO_FILE: ConfigFile = { name: 'default', values: {}, locate: () => null, warnings: [] };

function readConfigFile({ flags, env, cwd }: ConfigSources): ConfigFile {
  const named = flags.config ?? (env.RELAY_CONFIG === '' ? undefined : env.RELAY_CONFIG);
  const home = env.HOME ?? homedir();
  const usual = [resolve(cwd, 'relay.config.yaml'), join(home, '.config', 'relay', 'config.yaml')];
  const name = named === undefined ? usual.find((path) => existsSync(path)) : resolve(cwd, named);
  if (name === undefined) return NO_FILE;
  if (existsSync(name)) return parseConfigFile(name);
  return { ...NO_FILE, warnings: [`the config file ${name} does not exist; defaults are used`] };
}

function parseConfigFile(name: string): ConfigFile {
  const { value, findings, locate } = parseSource(readTextFile(name, CONFIG_BYTES_MAX));
  if (findings.some((finding) => finding.code === 'empty_file')) return { ...NO_FILE, name };
  const file = { ...NO_FILE, name, locate };
  if (findings.length > 0) throw invalidConfig(findings, { origins: {}, file });
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new RelayError('INVALID_CONFIG', `${name} must hold a mapping of settings`);
  }
  return { ...file, values: value as Record<string, unknown> };
}

/** All problems in one error: the first in its message, the others in its details. */
function invalidConfig(
  findings: readonly Finding[],
  { origins, file }: { origins: Readonly<Record<string, string>>; file: ConfigFile },
): RelayError {
  const problems = new Problems(file.locate);
  for (const finding of findings) problems.error(withoutSecret(finding));
  const [first] = problems.errors;
  const origin = origins[first?.path.split('.')[0] ?? ''] ?? file.name;
  const place = origin === file.name && first?.line ? `${origin}:${first.line}:${first.column}` : origin;
  const more = problems.errors.length > 1 ? ` (and ${problems.errors.length - 1} more)` : '';
  const details = problems.errors.length > 1 ? { errors: problems.errors } : undefined;
  return new RelayError('INVALID_CONFIG', `${place}: ${first?.message}${more}`, {
    hint: first?.hint,
    details,
  });
}

function withoutSecret(finding: Finding): Finding {
  const name = finding.path.join('.');
  const key =
    finding.path[0] === 'providers' ? `providers.${finding.path[2]}` : String(finding.path[0] ?? '');
  const rule = SECRET_RULES[key];
  return rule === undefined ? finding : { ...finding, message: `\`${name}\` must be ${rule}` };
}

const envName = (key: string): string => `RELAY_${key.toUpperCase()}`;

/** A misspelt variable would be ignored in silence; say so when it is close to one that exists. */
function unknownVariables(env: ConfigSources['env']): string[] {
  const known = [...SCALAR_KEYS.map(envName), 'RELAY_CONFIG'];
  return Object.keys(env)
    .filter((name) => name.startsWith('RELAY_') && !known.includes(name))
    .flatMap((name) => {
      const near = nearest(name, known);
      return near === null ? [] : [`the environment variable ${name} is not known; did you mean ${near}?`];
    });
}
