/** Settings: who wins, what is said about mistakes, and that secrets are not repeated (SPEC S14.2). */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type ConfigSources, exampleConfig, loadConfig, maskConfig, toDefinitionLimits } from './config.ts';

let cwd: string;
beforeEach(() => {
  cwd = mkdtempSync(join(tmpdir(), 'relay-config-'));
});
afterEach(() => rmSync(cwd, { recursive: true, force: true }));

const load = ({ flags = {}, env = {} }: Partial<ConfigSources> = {}) =>
  loadConfig({ flags, env: { HOME: join(cwd, 'home'), ...env }, cwd });
const file = (text: string, name = 'relay.config.yaml'): void => writeFileSync(join(cwd, name), text);

// SPEC S14.2
describe('a setting', () => {
  it('has a default', () => {
    const { config, origins, warnings } = load();
    expect(config).toEqual({
      data: '.relay',
      blobs: { kind: 'files' },
      broker: 'none',
      log: 'warn',
      map_items_max: 100_000,
      definition_limits: { tasks_max: 10_000, task_config_bytes_max: 65_536, file_bytes_max: 8_388_608 },
      providers: {},
      prices: {},
    });
    expect(new Set(Object.values(origins))).toEqual(new Set(['default']));
    expect(warnings).toEqual([]);
  });

  it('comes from the flag before the variable before the file before the default', () => {
    const value = (sources: Partial<ConfigSources>) => {
      const { config, origins } = load(sources);
      return `${config.data} from ${origins.data.replace(cwd, '.')}`;
    };
    expect(value({})).toBe('.relay from default');
    file('data: from-file\n');
    expect(value({})).toBe('from-file from ./relay.config.yaml');
    expect(value({ env: { RELAY_DATA: 'from-env' } })).toBe('from-env from RELAY_DATA');
    expect(value({ env: { RELAY_DATA: 'from-env' }, flags: { data: 'from-flag' } })).toBe(
      'from-flag from --data',
    );
    expect(value({ env: { RELAY_DATA: '' } })).toBe('from-file from ./relay.config.yaml');
  });

  it('comes from --config before RELAY_CONFIG before this folder before the home folder', () => {
    const value = (sources: Partial<ConfigSources>): string => load(sources).config.data;
    mkdirSync(join(cwd, 'home', '.config', 'relay'), { recursive: true });
    file('data: home\n', 'home/.config/relay/config.yaml');
    expect(value({})).toBe('home');
    file('data: here\n');
    expect(value({})).toBe('here');
    file('data: env\n', 'env.yaml');
    expect(value({ env: { RELAY_CONFIG: 'env.yaml' } })).toBe('env');
    file('data: flag\n', 'flag.yaml');
    expect(value({ env: { RELAY_CONFIG: 'env.yaml' }, flags: { config: 'flag.yaml' } })).toBe('flag');
  });

  it('of the definition limits can be set in the file one by one', () => {
    file('definition_limits: { tasks_max: 20000 }\n');
    expect(toDefinitionLimits(load().config)).toEqual({
      tasksMax: 20_000,
      taskConfigBytesMax: 65_536,
      fileBytesMax: 8_388_608,
    });
  });
});

// SPEC S14.2
describe('a config file', () => {
  it('of the blobs may name a bucket, with defaults for what buckets have in common', () => {
    file('blobs: { kind: s3, endpoint: "http://127.0.0.1:9000", bucket: relay }\n');
    expect(load().config.blobs).toEqual({
      kind: 's3',
      endpoint: 'http://127.0.0.1:9000',
      bucket: 'relay',
      region: 'us-east-1',
      access_key_env: 'AWS_ACCESS_KEY_ID',
      secret_key_env: 'AWS_SECRET_ACCESS_KEY',
      prefix: '',
    });
    file('blobs: { kind: s4 }\n');
    expect(() => load()).toThrow('`blobs.kind` must be one of `files`, `s3`, not the text "s4"');
    file('blobs: { kind: s3, bucket: relay }\n');
    expect(() => load()).toThrow('`endpoint` is missing in `blobs`');
    file('blobs: { kind: files, bucket: relay }\n');
    expect(() => load()).toThrow('unknown key `bucket`');
  });

  it('that is missing is a warning', () => {
    expect(load({ flags: { config: 'nope.yaml' } }).warnings).toEqual([
      `the config file ${join(cwd, 'nope.yaml')} does not exist; defaults are used`,
    ]);
  });

  it('may be empty', () => {
    file('# nothing yet\n');
    expect(load().config.data).toBe('.relay');
  });

  it('is the example itself, commented in', () => {
    const text = exampleConfig();
    expect(parse(text)).toBeNull();
    file(text.replace(/^# (\w+: .+|definition_limits:| {2}\w+: \d+)$/gm, '$1'));
    expect(load().config).toEqual(loadConfig({ flags: {}, env: {}, cwd: join(cwd, 'none') }).config);
  });

  for (const [what, text, message, hint] of [
    [
      'an unknown key',
      'data: x\nbrokr: none\n',
      ':2:1: unknown key `brokr` in the file',
      'did you mean `broker`?',
    ],
    ['a wrong type', 'data: 5\n', ':1:7: `data` must be text, not 5', 'put quotes around it'],
    [
      'a wrong value',
      'log: loud\n',
      ':1:6: `log` must be one of `debug`, `info`, `warn`, `error`, `silent`, not the text "loud"',
      undefined,
    ],
    [
      'broken YAML',
      'data: [\n',
      ':1:8: a `[` is not closed by a `]`',
      'mend the indentation, or close the bracket',
    ],
    [
      'a duplicate key',
      'data: a\ndata: b\n',
      ':2:1: key `data` is defined twice; the first is on line 1',
      'remove one of them',
    ],
    ['no mapping', '- a\n', ' must hold a mapping of settings', undefined],
    [
      'several mistakes',
      'dat: x\nlogs: y\n',
      ':1:1: unknown key `dat` in the file (and 1 more)',
      'did you mean `data`?',
    ],
    [
      'a store that is none',
      'store: mysql://me:hunter22@db/x\n',
      ':1:8: `store` must be sqlite:PATH or postgres://…',
      undefined,
    ],
    [
      'a provider without a kind',
      'providers:\n  lab: { base_url: "http://x/v1" }\n',
      ':2:8: `providers.lab` needs a `kind`: openai, anthropic, google, openai_compatible',
      undefined,
    ],
    [
      'a key in place of its variable',
      'providers: { openai: { api_key_env: sk-hunter2 } }\n',
      ':1:37: `providers.openai.api_key_env` must be the name of an environment variable, not a key',
      undefined,
    ],
    [
      'a place that is none',
      'providers: { openai: { base_url: "http://[x" } }\n',
      ':1:34: `providers.openai.base_url` must be http://… or https://…, with the version in it: https://api.example.org/v1',
      undefined,
    ],
    [
      'a setting that a provider does not have',
      'providers: { openai: { api_key: sk-hunter2 } }\n',
      ':1:24: unknown key `api_key` in `providers.openai`',
      'known keys: kind, base_url, api_key_env, structured_output, stream_usage',
    ],
    [
      'a price that is none',
      'prices: { openai/x: { input: -1, output: 2 } }\n',
      ':1:30: `prices["openai/x"].input` must be at least 0, not -1',
      undefined,
    ],
    [
      'a token that is no text',
      'token: 12345678\n',
      ':1:8: `token` must be text of at least 8 characters',
      'put quotes around it',
    ],
  ] as const) {
    it(`with ${what} is refused with its place`, () => {
      file(text);
      const expected = { code: 'INVALID_CONFIG', message: `${join(cwd, 'relay.config.yaml')}${message}` };
      expect(() => load()).toThrow(
        expect.objectContaining(hint === undefined ? expected : { ...expected, hint }),
      );
    });
  }

  it('that is a folder is refused', () => {
    mkdirSync(join(cwd, 'relay.config.yaml'));
    expect(() => load()).toThrow(expect.objectContaining({ code: 'FILE_NOT_READABLE' }));
  });
});

// SPEC S14.2
describe('a variable', () => {
  it('with a wrong value is named', () => {
    expect(() => load({ env: { RELAY_LOG: 'loud' } })).toThrow(/^RELAY_LOG: `log` must be one of/);
    expect(() => load({ flags: { server: 'ftp://x' } })).toThrow(/^--server: `server` must be http/);
  });

  it('that is misspelt is a warning', () => {
    expect(
      load({ env: { RELAY_STOR: 'sqlite:x', RELAYED: '1', RELAY_SOMETHING_ELSE: '1' } }).warnings,
    ).toEqual(['the environment variable RELAY_STOR is not known; did you mean RELAY_STORE?']);
  });
});

// SPEC S14.2, S14.4
describe('a secret', () => {
  it('is not repeated by an error about it', () => {
    for (const env of [
      { RELAY_TOKEN: 'hunter2' },
      { RELAY_STORE: 'postgress://me:hunter2@db/x' },
      { RELAY_BROKER: 'kafka://me:hunter2@x' },
      { RELAY_SERVER: 'me:hunter2@host' },
    ]) {
      let message = '';
      try {
        load({ env });
      } catch (error) {
        message = JSON.stringify(error) + String(error);
      }
      expect(message).toContain('must be');
      expect(message).not.toContain('hunter2');
    }
  });

  it('is masked when settings are shown', () => {
    const { config } = load({
      env: {
        RELAY_TOKEN: 'hunter2-hunter2',
        RELAY_STORE: 'postgres://me:hun@ter/2@db/x?sslmode=require&sslpassword=hunter2',
        RELAY_BROKER: 'redis://:hunter2@cache:6379/0',
        RELAY_SERVER: 'https://me:hunter2@relay.example.org/x?token=hunter2',
      },
    });
    expect(maskConfig(config)).toMatchObject({
      token: '***',
      store: 'postgres://me:***@db/x?sslmode=require&sslpassword=***',
      broker: 'redis://:***@cache:6379/0',
      server: 'https://me:***@relay.example.org/x?token=***',
    });
  });

  it('leaves addresses without one as they are', () => {
    const store = 'postgres://relay@localhost:5432/relay';
    expect(maskConfig(load({ env: { RELAY_STORE: store } }).config).store).toBe(store);
  });
});
