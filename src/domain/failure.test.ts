/** What is retried and what is not, line by line of SPEC S5.2. */
import { describe, expect, test } from 'vitest';
import { InvariantError } from '../base/invariant.ts';
import {
  ADVICE,
  classify,
  FAILURE_CODES,
  type FailureFacts,
  isExpectedStatus,
  isRetryable,
} from './failure.ts';

describe('HTTP statuses', () => {
  test.each([408, 425, 429, 500, 502, 503, 504, 599])('%d is retried', (status) => {
    // SPEC S5.2
    expect(classify({ kind: 'http', status })).toEqual({
      class: 'http',
      code: 'HTTP_STATUS',
      retryable: true,
    });
  });

  test.each([301, 400, 401, 403, 404, 409, 410, 422, 600])('%d is FAILED at once', (status) => {
    // SPEC S5.2
    expect(classify({ kind: 'http', status })).toEqual({
      class: 'http',
      code: 'HTTP_STATUS',
      retryable: false,
    });
  });

  test('a good status outside expect is FAILED at once', () => {
    // SPEC S5.2
    expect(classify({ kind: 'http', status: 200, expect: [201] }).retryable).toBe(false);
  });

  test('a status inside expect is no failure, and asking for its class is a bug', () => {
    // SPEC S9.3
    expect(isExpectedStatus(404, [200, 404])).toBe(true);
    expect(isExpectedStatus(204)).toBe(true);
    expect(isExpectedStatus(300)).toBe(false);
    expect(() => classify({ kind: 'http', status: 404, expect: [404] })).toThrow(InvariantError);
  });

  test('an http failure that does not tell its status is not retried', () => {
    // SPEC S5.2
    expect(isRetryable({ class: 'http', code: 'HTTP_STATUS' })).toBe(false);
  });
});

describe('network trouble', () => {
  test.each([
    ['ECONNREFUSED', 'CONNECTION_REFUSED'],
    ['ECONNRESET', 'CONNECTION_RESET'],
    ['EPIPE', 'CONNECTION_RESET'],
    ['UND_ERR_SOCKET', 'CONNECTION_RESET'],
    ['ENOTFOUND', 'DNS_FAILED'],
    ['EAI_AGAIN', 'DNS_FAILED'],
    ['EHOSTUNREACH', 'NETWORK_FAILED'],
    ['UND_ERR_DESTROYED', 'NETWORK_FAILED'],
    ['EPROTO', 'TLS_FAILED'],
    ['ERR_SSL_WRONG_VERSION_NUMBER', 'TLS_FAILED'],
    ['', 'NETWORK_FAILED'],
  ])('%s is %s and retried', (code, expected) => {
    // SPEC S5.1, S5.2
    expect(classify({ kind: 'network', code })).toEqual({
      class: 'transport',
      code: expected,
      retryable: true,
    });
  });

  test.each([
    'ETIMEDOUT',
    'ESOCKETTIMEDOUT',
    'UND_ERR_CONNECT_TIMEOUT',
    'UND_ERR_HEADERS_TIMEOUT',
    'UND_ERR_BODY_TIMEOUT',
    'ERR_TLS_HANDSHAKE_TIMEOUT',
  ])('%s is a timeout and retried', (code) => {
    // SPEC S5.1, S5.2
    expect(classify({ kind: 'network', code })).toEqual({
      class: 'timeout',
      code: 'CONNECTION_TIMEOUT',
      retryable: true,
    });
  });

  test.each([
    'CERT_HAS_EXPIRED',
    'CERT_NOT_YET_VALID',
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'SELF_SIGNED_CERT_IN_CHAIN',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
    'ERR_TLS_CERT_ALTNAME_INVALID',
  ])('%s is a certificate error and FAILED at once', (code) => {
    // SPEC S5.2
    expect(classify({ kind: 'network', code })).toEqual({
      class: 'transport',
      code: 'CERTIFICATE_INVALID',
      retryable: false,
    });
  });

  test('a bad URL is FAILED at once, also when the network stack says so', () => {
    // SPEC S5.2
    const bad = { class: 'transport', code: 'BAD_URL', retryable: false };
    expect(classify({ kind: 'bad_url' })).toEqual(bad);
    expect(classify({ kind: 'network', code: 'ERR_INVALID_URL' })).toEqual(bad);
  });
});

describe('everything else', () => {
  const cases: readonly [FailureFacts, string, string, boolean][] = [
    [{ kind: 'timeout' }, 'timeout', 'TIMEOUT', true],
    [{ kind: 'exit', code: 1 }, 'handler', 'HANDLER_EXIT', true],
    [{ kind: 'thrown' }, 'handler', 'HANDLER_THREW', true],
    [{ kind: 'worker_lost' }, 'worker_lost', 'WORKER_LOST', true],
    [{ kind: 'output', problem: 'not_json' }, 'output', 'OUTPUT_NOT_JSON', true],
    [{ kind: 'output', problem: 'schema' }, 'output', 'OUTPUT_SCHEMA', true],
    [{ kind: 'output', problem: 'missing' }, 'output', 'OUTPUT_MISSING', true],
    [{ kind: 'output', problem: 'empty' }, 'output', 'OUTPUT_EMPTY', true],
    [{ kind: 'output', problem: 'too_long' }, 'output', 'OUTPUT_TOO_LONG', true],
    [{ kind: 'output', problem: 'truncated' }, 'output', 'OUTPUT_TRUNCATED', true],
    [{ kind: 'terminal' }, 'handler', 'HANDLER_TERMINAL', false],
    [{ kind: 'template' }, 'template', 'TEMPLATE_FAILED', false],
    [{ kind: 'rejected' }, 'rejected', 'REJECTED', false],
    [{ kind: 'budget' }, 'budget', 'BUDGET_EXCEEDED', false],
    [{ kind: 'limit' }, 'limit', 'LIMIT_IMPOSSIBLE', false],
  ];
  test.each(cases)('%o is %s %s, retried: %s', (facts, failureClass, code, retryable) => {
    // SPEC S5.1, S5.2
    expect(classify(facts)).toEqual({ class: failureClass, code, retryable });
    expect((FAILURE_CODES as Record<string, readonly string[]>)[failureClass]).toContain(code);
  });

  test('a handler’s own code is judged by its class', () => {
    // SPEC S5.2
    expect(isRetryable({ class: 'handler', code: 'GPU_ON_FIRE' })).toBe(true);
    expect(isRetryable({ class: 'rejected', code: 'NOT_TODAY' })).toBe(false);
  });
});

test('every class tells people what to do', () => {
  // SPEC S5.1
  expect(Object.keys(ADVICE)).toEqual(Object.keys(FAILURE_CODES));
  expect(Object.values(ADVICE).every((text) => text.length > 20 && text.endsWith('.'))).toBe(true);
});

test('a code belongs to one class', () => {
  // SPEC S5.1
  const codes: string[] = Object.values(FAILURE_CODES).flat();
  expect(new Set(codes).size).toBe(codes.length);
});
