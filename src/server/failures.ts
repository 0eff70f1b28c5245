/** Errors as answers: one shape for all of them, whoever threw (SPEC S13.1). */
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { ERROR_CODES, type ErrorCode } from '../base/error-codes.ts';
import { RelayError, toRelayError } from '../base/errors.ts';
import type { Logger } from '../base/logger.ts';

const BY_STATUS: Readonly<Record<number, ErrorCode>> = {
  401: 'UNAUTHENTICATED',
  403: 'FORBIDDEN',
  404: 'NOT_FOUND',
  405: 'NOT_FOUND',
  413: 'PAYLOAD_TOO_LARGE',
  415: 'UNSUPPORTED_MEDIA_TYPE',
  429: 'RATE_LIMITED',
};

/** Any thrown value as a RelayError; what Fastify refuses by itself gets the code of its status. */
export function toFailure(thrown: unknown): RelayError {
  if (thrown instanceof RelayError) return thrown;
  const { statusCode, message } = thrown as Partial<FastifyError>;
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500)
    return new RelayError(BY_STATUS[statusCode] ?? 'USAGE', message ?? 'the request is not understood', {
      cause: thrown,
    });
  return toRelayError(thrown);
}

/** Sends an error. A bug is logged with its stack; the caller gets the request id to report. */
export function sendFailure(
  thrown: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
  logger: Logger,
): FastifyReply {
  const failure = toFailure(thrown);
  const { status, retryable } = ERROR_CODES[failure.code];
  if (status === 401) reply.header('www-authenticate', 'Bearer');
  if (retryable) reply.header('retry-after', '1');
  if (failure.code !== 'INTERNAL') return reply.code(status).type(JSON_TYPE).send(failure.toShape());
  logger.error('http.failed', { request_id: request.id, error: failure.cause ?? failure });
  const told = new RelayError('INTERNAL', `something went wrong; the request id is ${request.id}`);
  return reply.code(status).type(JSON_TYPE).send(told.toShape());
}

const JSON_TYPE = 'application/json; charset=utf-8';
