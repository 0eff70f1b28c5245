/** What goes over each wire and how it is read, against a server that sends exactly what a test says (SPEC S5.1, S5.3, S9.1, S9.2). */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../base/clock.ts';
import { traceIdOf, traceOfRun } from '../../base/trace.ts';
import type { ModelAnswer, ModelRequest } from '../model.ts';
import type { ProviderSettings } from '../provider-settings.ts';
import { createModels } from '../registry.ts';

const RUN_ID = '01a1df28-2d2a-7af4-90b3-23f157271ba2';

interface Seen {
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: Record<string, unknown>;
}

let server: Server;
let base: string;
let seen: Seen[];
let reply: (response: ServerResponse, request: IncomingMessage) => void;

beforeEach(async () => {
  seen = [];
  server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const body = JSON.parse(Buffer.concat(chunks).toString()) as Seen['body'];
    seen.push({ url: request.url ?? '', headers: request.headers, body });
    reply(response, request);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

const env = {
  OPENAI_API_KEY: 'sk-o',
  ANTHROPIC_API_KEY: ' sk-a\n',
  GOOGLE_GENERATIVE_AI_API_KEY: 'sk-g',
  LAB: 'sk-l',
};

function ask(
  reference: string,
  request: Partial<ModelRequest> = {},
  settings: ProviderSettings = {},
): Promise<ModelAnswer> {
  const name = reference.split('/')[0] ?? '';
  const models = createModels({
    providers: { [name]: { base_url: `${base}/v1/`, ...settings } },
    prices: {},
    env,
  });
  const found = models.find(reference);
  if (!found.ok) throw new TypeError(found.message);
  return found.provider.generate({
    model: found.model,
    messages: [
      { role: 'system', content: 'be brief' },
      { role: 'user', content: 'tides?' },
    ],
    params: {},
    schema: undefined,
    wantsJson: false,
    attempt: 1,
    signal: AbortSignal.timeout(5_000),
    clock: new ManualClock(),
    trace: traceOfRun(RUN_ID),
    onToken: () => {},
    ...request,
  });
}

const stream = (events: readonly unknown[], end = '\n\n'): void => {
  reply = (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
    response.end(
      events.map((each) => `data: ${typeof each === 'string' ? each : JSON.stringify(each)}`).join('\n\n') +
        end,
    );
  };
};
const status = (code: number, body: unknown, headers: Record<string, string> = {}): void => {
  reply = (response) => {
    response.writeHead(code, { 'content-type': 'application/json', ...headers });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  };
};

const said = (content: string, finish_reason: string | null = null) => ({
  choices: [{ index: 0, delta: { content }, finish_reason }],
});
const OPENAI_ANSWER = [said('The '), said('sea'), said('', 'stop'), '[DONE]'];
const ANTHROPIC_ANSWER = [
  {
    type: 'message_start',
    message: {
      usage: {
        input_tokens: 10,
        cache_read_input_tokens: 90,
        cache_creation_input_tokens: 5,
        output_tokens: 1,
      },
    },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'hm' } },
  { type: 'ping' },
  { type: 'content_block_delta', index: 1, delta: { type: 'text_delta', text: 'The sea' } },
  { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 7 } },
  { type: 'message_stop' },
];
const GOOGLE_ANSWER = [
  {
    candidates: [{ content: { parts: [{ text: 'hm', thought: true }, { text: 'The ' }] } }],
    usageMetadata: { promptTokenCount: 50 },
  },
  {
    candidates: [{ content: { parts: [{ text: 'sea' }] }, finishReason: 'STOP' }],
    usageMetadata: {
      promptTokenCount: 50,
      cachedContentTokenCount: 40,
      candidatesTokenCount: 3,
      thoughtsTokenCount: 4,
    },
  },
];
const schema = {
  type: 'object',
  properties: { level: { type: 'integer', minimum: 0 }, note: { type: 'string', minLength: 3 } },
  required: ['level', 'note'],
};
const json = { wantsJson: true, schema } as const;

describe('openai', () => {
  it('sends a chat with its key and reads text, finish and cached tokens', async () => {
    const usage = { prompt_tokens: 100, completion_tokens: 20, prompt_tokens_details: { cached_tokens: 60 } };
    stream([...OPENAI_ANSWER.slice(0, 3), { choices: [], usage }, '[DONE]']);
    const tokens: string[] = [];
    const answer = await ask('openai/gpt-5-mini', {
      params: { max_tokens: 9, temperature: 0, stop: ['x'], seed: 3, top_p: 0.5 },
      onToken: (text) => tokens.push(text),
    });
    expect(answer).toEqual({
      text: 'The sea',
      usage: { tokens_in: 100, tokens_out: 20, tokens_cached: 60 },
      finish: 'stop',
    });
    expect(tokens).toEqual(['The ', 'sea']);
    expect(seen[0]).toMatchObject({ url: '/v1/chat/completions', headers: { authorization: 'Bearer sk-o' } });
    expect(seen[0]?.body).toEqual({
      model: 'gpt-5-mini',
      messages: [
        { role: 'system', content: 'be brief' },
        { role: 'user', content: 'tides?' },
      ],
      max_completion_tokens: 9,
      temperature: 0,
      stop: ['x'],
      seed: 3,
      top_p: 0.5,
      stream: true,
      stream_options: { include_usage: true },
    });
  });

  it('holds the model to a schema it can be held to, and tells it the others', async () => {
    stream(OPENAI_ANSWER);
    await ask('openai/x', json);
    expect(seen[0]?.body.response_format).toEqual({
      type: 'json_schema',
      json_schema: {
        name: 'answer',
        strict: true,
        schema: {
          type: 'object',
          properties: { level: { type: 'integer', minimum: 0 }, note: { type: 'string' } },
          required: ['level', 'note'],
          additionalProperties: false,
        },
      },
    });
    await ask('openai/x', { wantsJson: true, schema: { ...schema, required: ['level'] } });
    expect(seen[1]?.body).toMatchObject({ response_format: { type: 'json_object' } });
    expect(JSON.stringify(seen[1]?.body.messages)).toContain('It must fit this JSON Schema');
    await ask('openai/x', { wantsJson: true, schema: { type: 'array' } });
    expect(seen[2]?.body).not.toHaveProperty('response_format');
    expect(JSON.stringify(seen[2]?.body.messages)).toContain('Answer with one JSON value');
  });

  it('a compatible server is asked in its own words, without a key when it has none', async () => {
    stream(OPENAI_ANSWER);
    await ask('lab/small', { ...json, params: { max_tokens: 9 } }, { kind: 'openai_compatible' });
    expect(seen[0]?.headers.authorization).toBeUndefined();
    expect(seen[0]?.body).toMatchObject({ max_tokens: 9 });
    expect(seen[0]?.body).not.toHaveProperty('response_format');
    const settings = {
      kind: 'openai_compatible',
      api_key_env: 'LAB',
      structured_output: 'json_schema',
    } as const;
    await ask('lab/small', json, settings);
    expect(seen[1]?.headers.authorization).toBe('Bearer sk-l');
    expect(seen[1]?.body).toMatchObject({ response_format: { type: 'json_schema' }, stream_options: {} });
    await ask('lab/small', {}, { ...settings, stream_usage: false });
    expect(seen[2]?.body).not.toHaveProperty('stream_options');
  });

  it('an answer that does not stream is read as well, and one that is not counted is estimated', async () => {
    status(200, { choices: [{ message: { content: 'The sea' }, finish_reason: 'length' }] });
    expect(await ask('openai/x')).toEqual({
      text: 'The sea',
      usage: { tokens_in: 37, tokens_out: 27 },
      finish: 'length',
    });
  });

  it('a stream that ends in order without a reason is whole', async () => {
    stream([said('The sea'), '[DONE]']);
    expect(await ask('openai/x')).toMatchObject({ text: 'The sea', finish: 'other' });
  });

  it('a refusal is no answer', async () => {
    stream([
      { choices: [{ delta: { refusal: 'I cannot' }, finish_reason: null }] },
      said('', 'stop'),
      '[DONE]',
    ]);
    expect(await ask('openai/x')).toMatchObject({ text: '', finish: 'filter' });
    stream([said('', 'content_filter')]);
    expect(await ask('openai/x')).toMatchObject({ finish: 'filter' });
  });
});

describe('anthropic', () => {
  it('sends messages with its key and counts cached tokens as input', async () => {
    stream(ANTHROPIC_ANSWER);
    expect(await ask('anthropic/claude-opus-5', { params: { stop: ['x'], temperature: 1 } })).toEqual({
      text: 'The sea',
      usage: { tokens_in: 105, tokens_out: 7, tokens_cached: 90 },
      finish: 'stop',
    });
    expect(seen[0]).toMatchObject({
      url: '/v1/messages',
      headers: { 'x-api-key': 'sk-a', 'anthropic-version': '2023-06-01' },
      body: {
        model: 'claude-opus-5',
        max_tokens: 8_192,
        system: 'be brief',
        messages: [{ role: 'user', content: 'tides?' }],
        stop_sequences: ['x'],
        temperature: 1,
        stream: true,
      },
    });
  });

  it('holds newer models to a schema and tells older ones', async () => {
    stream(ANTHROPIC_ANSWER);
    await ask('anthropic/claude-opus-5', json);
    expect(seen[0]?.body.output_config).toEqual({
      format: {
        type: 'json_schema',
        schema: {
          type: 'object',
          properties: { level: { type: 'integer' }, note: { type: 'string' } },
          required: ['level', 'note'],
          additionalProperties: false,
        },
      },
    });
    await ask('anthropic/claude-3-5-haiku-latest', json);
    expect(seen[1]?.body).not.toHaveProperty('output_config');
    expect(seen[1]?.body.system).toMatch(/^be brief\n\nAnswer with one JSON value.*JSON Schema/s);
  });

  it('an overload in the middle of a stream is told as what it is', async () => {
    stream([
      ...ANTHROPIC_ANSWER.slice(0, 5),
      { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } },
    ]);
    await expect(ask('anthropic/x')).rejects.toMatchObject({
      message: 'anthropic answered 529 overloaded_error: Overloaded',
      facts: { kind: 'http', status: 529 },
      extra: { status: 529, provider_code: 'overloaded_error' },
    });
  });
});

describe('google', () => {
  it('sends contents with its key in a header, and leaves thoughts out of the answer', async () => {
    stream(GOOGLE_ANSWER);
    const params = { max_tokens: 9, temperature: 0, top_p: 0.5, stop: ['x'], seed: 3 };
    expect(await ask('google/gemini-3.5-flash', { params })).toEqual({
      text: 'The sea',
      usage: { tokens_in: 50, tokens_out: 7, tokens_cached: 40 },
      finish: 'stop',
    });
    expect(seen[0]).toMatchObject({
      url: '/v1/models/gemini-3.5-flash:streamGenerateContent?alt=sse',
      headers: { 'x-goog-api-key': 'sk-g' },
      body: {
        systemInstruction: { parts: [{ text: 'be brief' }] },
        contents: [{ role: 'user', parts: [{ text: 'tides?' }] }],
        generationConfig: { maxOutputTokens: 9, temperature: 0, topP: 0.5, stopSequences: ['x'], seed: 3 },
      },
    });
  });

  it('holds the model to JSON and to a schema', async () => {
    stream(GOOGLE_ANSWER);
    await ask('google/x', json);
    expect(seen[0]?.body.generationConfig).toEqual({
      responseMimeType: 'application/json',
      responseJsonSchema: {
        type: 'object',
        properties: { level: { type: 'integer', minimum: 0 }, note: { type: 'string' } },
        required: ['level', 'note'],
      },
    });
  });

  it('a prompt that is blocked is no answer', async () => {
    stream([{ promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 3 } }]);
    expect(await ask('google/x')).toMatchObject({ text: '', finish: 'filter' });
  });

  it('its own way to say when to come back is understood', async () => {
    const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.5s' }];
    status(429, [{ error: { code: 429, message: 'quota', status: 'RESOURCE_EXHAUSTED', details } }]);
    await expect(ask('google/x')).rejects.toMatchObject({
      message: 'google answered 429 RESOURCE_EXHAUSTED: quota',
      extra: { retryAfterMs: 34_500 },
    });
  });
});

describe('any wire', () => {
  // SPEC S12.5
  it('carries the trace of the run, each call as a span of its own', async () => {
    stream(OPENAI_ANSWER);
    await ask('openai/x');
    await ask('openai/x');
    const [first = '', second = ''] = seen.map(({ headers }) => String(headers.traceparent));
    for (const traceparent of [first, second])
      expect(traceIdOf({ traceparent })).toBe(RUN_ID.replaceAll('-', ''));
    expect(first).not.toBe(second);
  });

  it('reads events however they are cut and ended', async () => {
    const text = `: comment\r\n\r\nevent: x\r\ndata: ${JSON.stringify(said('潮汐'))}\r\n\r\ndata:${JSON.stringify(said('!', 'stop'))}`;
    reply = (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const bytes = Buffer.from(text);
      const next = (at: number): void => {
        if (at >= bytes.length) response.end();
        else response.write(bytes.subarray(at, at + 1), () => setImmediate(next, at + 1));
      };
      next(0);
    };
    expect(await ask('openai/x')).toMatchObject({ text: '潮汐!', finish: 'stop' });
  });

  it('an answer that ends before its end is cut, even when the connection is closed in order', async () => {
    for (const [model, events] of [
      ['openai/x', OPENAI_ANSWER.slice(0, 2)],
      ['anthropic/x', ANTHROPIC_ANSWER.slice(0, 5)],
      ['google/x', GOOGLE_ANSWER.slice(0, 1)],
    ] as const) {
      stream(events);
      await expect(ask(model)).rejects.toMatchObject({
        facts: { kind: 'network', code: 'ECONNRESET' },
        message: expect.stringContaining('broke off in the middle of its answer') as string,
      });
    }
  });

  it('an empty answer, a page and half a value cannot be read', async () => {
    stream([]);
    await expect(ask('openai/x')).rejects.toMatchObject({ facts: { kind: 'malformed' } });
    status(200, '<html>Welcome</html>');
    await expect(ask('openai/x')).rejects.toThrow('it begins with "<html>Welcome</html>"');
    stream(['{"choices": [']);
    await expect(ask('openai/x')).rejects.toMatchObject({ facts: { kind: 'malformed' } });
  });

  it('retry-after-ms is more exact than Retry-After', async () => {
    status(429, { error: { message: 'x' } }, { 'retry-after': '3', 'retry-after-ms': '2750' });
    await expect(ask('openai/x')).rejects.toMatchObject({ extra: { retryAfterMs: 2_750 } });
    status(429, 'slow down', { 'retry-after': 'soon' });
    await expect(ask('openai/x')).rejects.toMatchObject({
      message: 'openai answered 429: slow down',
      extra: expect.not.objectContaining({ retryAfterMs: expect.anything() as number }) as object,
    });
  });

  it('a redirect is not followed: the key stays where it was sent', async () => {
    status(302, '', { location: `${base}/elsewhere` });
    await expect(ask('anthropic/x')).rejects.toMatchObject({ facts: { kind: 'http', status: 302 } });
    expect(seen).toHaveLength(1);
  });

  it('the signal ends the exchange', async () => {
    const controller = new AbortController();
    const gone = new Promise<void>((resolve) => {
      reply = (response) => {
        response.on('close', resolve);
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write(`data: ${JSON.stringify(said('The'))}\n\n`);
      };
    });
    const asked = ask('openai/x', { signal: controller.signal, onToken: () => controller.abort() });
    await expect(asked).rejects.toMatchObject({ name: 'AbortError' });
    await gone;
  });

  it('another name for a built-in provider has its prices, a compatible server has none', () => {
    const providers = {
      work: { kind: 'openai' },
      lab: { kind: 'openai_compatible', base_url: base },
    } as const;
    const prices = { 'work/gpt-5': { input: 1, output: 1, cached_input: null } };
    const models = createModels({ providers, prices, env });
    expect(models.price('work/gpt-5-mini')).toEqual(models.price('openai/gpt-5-mini'));
    expect(models.price('work/gpt-5')).toEqual(prices['work/gpt-5']);
    expect(models.price('lab/gpt-5-mini')).toBeNull();
    expect(models.price('nobody/gpt-5-mini')).toBeNull();
  });

  it('a key that cannot be sent is told by its variable, not by its value', () => {
    const models = createModels({ providers: {}, prices: {}, env: { OPENAI_API_KEY: 'sk with spaces' } });
    expect(models.find('openai/x')).toMatchObject({
      ok: false,
      message:
        'OPENAI_API_KEY is not a key: it has spaces, line ends or other characters that cannot be sent',
    });
  });
});
