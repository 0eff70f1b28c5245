/**
 * Blobs in a bucket of S3 or anything that speaks its protocol: one object each, put in one request whose length and hash are
 * known before it starts, so that a bucket never shows half of one. A bucket that is away is tried again a few times.
 */
import { Readable } from 'node:stream';
import type { ReadableStream as WebStream } from 'node:stream/web';
import { setTimeout as delay } from 'node:timers/promises';
import type { Clock } from '../../base/clock.ts';
import { RelayError } from '../../base/errors.ts';
import { type BlobContent, type BlobName, type BlobStore, blobMissing, verified } from '../blob-store.ts';
import { type AwsCredentials, EMPTY_HASH, signRequest, uriEncoded } from './aws-signature.ts';

/** Where the bucket is, and who asks. */
export interface S3Options extends AwsCredentials {
  /** For example `https://s3.eu-central-1.amazonaws.com` or `http://127.0.0.1:9000`. */
  readonly endpoint: string;
  readonly bucket: string;
  /** Put before the name of every object, for example `relay/`. */
  readonly prefix: string;
  readonly clock: Clock;
}

interface Sending {
  readonly query?: Readonly<Record<string, string>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly payloadHash?: string;
  readonly body?: BlobContent;
  /** The body can be read only once, so the request is not repeated. */
  readonly isOnce?: boolean;
}

const TRIES_MAX = 4;
const RETRY_MS_MIN = 100;
/** How long a bucket may take to begin its answer; a large body is given more. */
const ANSWER_MS_MAX = 30_000;
const BYTES_PER_MS_MIN = 100;
const LIST_MAX = 1_000;

/** Keeps blobs in a bucket. */
export class S3BlobStore implements BlobStore {
  readonly #options: S3Options;

  constructor(options: S3Options) {
    this.#options = options;
  }

  async write(name: BlobName, content: BlobContent): Promise<void> {
    const isWhole = content instanceof Uint8Array;
    // What is at hand is checked before it is sent, and can be sent again.
    if (isWhole) for await (const _ of verified(name, content));
    const answer = await this.#send('PUT', name.ref, {
      headers: { 'content-length': String(name.bytes), 'content-type': 'application/octet-stream' },
      payloadHash: name.ref,
      body: isWhole ? content : verified(name, content),
      isOnce: !isWhole,
    });
    await answer.arrayBuffer();
  }

  async read(ref: string): Promise<Readable> {
    const answer = await this.#send('GET', ref);
    if (answer.status === 404 || answer.body === null) throw blobMissing(ref);
    return Readable.fromWeb(answer.body as WebStream<Uint8Array>);
  }

  async size(ref: string): Promise<number | null> {
    const answer = await this.#send('HEAD', ref);
    return answer.status === 404 ? null : Number(answer.headers.get('content-length') ?? 0);
  }

  async remove(ref: string, before = Number.POSITIVE_INFINITY): Promise<void> {
    if (before !== Number.POSITIVE_INFINITY) {
      const found = await this.#send('HEAD', ref);
      const storedAt = Date.parse(found.headers.get('last-modified') ?? '');
      // Times of objects are whole seconds.
      if (found.status === 404 || !(storedAt + 1_000 <= before)) return;
    }
    await (await this.#send('DELETE', ref)).arrayBuffer();
  }

  /** By the older of the two ways to list, which every service has: it goes on after the last name of a page. */
  async *olderThan(time: number): AsyncGenerator<string, void, undefined> {
    const { prefix } = this.#options;
    for (let marker = ''; ; ) {
      const query = { marker, 'max-keys': String(LIST_MAX), prefix };
      const text = await (await this.#send('GET', null, { query })).text();
      const objects = [...text.matchAll(/<Contents>(.*?)<\/Contents>/gs)].map(([, object = '']) => object);
      for (const object of objects) {
        marker = element(object, 'Key') ?? marker;
        const ref = marker.slice(prefix.length);
        const storedAt = Date.parse(element(object, 'LastModified') ?? '');
        if (/^[0-9a-f]{64}$/.test(ref) && storedAt < time) yield ref;
      }
      if (element(text, 'IsTruncated') !== 'true' || objects.length === 0) return;
    }
  }

  /** An answer that means something to the caller: done, or not there. */
  async #send(method: string, ref: string | null, sending: Sending = {}): Promise<Response> {
    for (let tries = 1; ; tries++) {
      const isLast = tries === TRIES_MAX || sending.isOnce === true;
      const answer = await this.#try(method, ref, sending).catch((error: unknown) => {
        if (error instanceof RelayError || isLast) throw this.#away(error);
        return null;
      });
      if (answer !== null && (answer.ok || (answer.status === 404 && ref !== null && method !== 'PUT')))
        return answer;
      const mayHelp = answer === null || answer.status >= 500 || answer.status === 429;
      if (answer !== null && (!mayHelp || isLast)) throw await this.#refused(answer);
      await answer?.body?.cancel();
      await delay(RETRY_MS_MIN * 2 ** (tries - 1));
    }
  }

  async #try(method: string, ref: string | null, sending: Sending): Promise<Response> {
    const { endpoint, bucket, prefix, clock } = this.#options;
    const { query = {}, headers = {}, payloadHash = EMPTY_HASH, body } = sending;
    const key = ref === null ? '' : `/${`${prefix}${ref}`.split('/').map(uriEncoded).join('/')}`;
    const url = new URL(`${endpoint.replace(/\/+$/, '')}/${uriEncoded(bucket)}${key}`);
    url.search = Object.entries(query)
      .map(([name, value]) => `${uriEncoded(name)}=${uriEncoded(value)}`)
      .join('&');
    const signed = signRequest({ method, url, headers, payloadHash, at: clock.now() }, this.#options);
    // The time is for the answer to begin; a body then takes as long as its reader.
    const late = new AbortController();
    const timer = setTimeout(
      () => late.abort(new DOMException('no answer in time', 'TimeoutError')),
      ANSWER_MS_MAX + Number(headers['content-length'] ?? 0) / BYTES_PER_MS_MIN,
    );
    try {
      return await fetch(url, {
        method,
        headers: signed,
        signal: late.signal,
        redirect: 'error',
        ...(body === undefined ? {} : { body: body as NonNullable<RequestInit['body']>, duplex: 'half' }),
      });
    } finally {
      clearTimeout(timer);
    }
  }

  /** What the content is wrong about is the sender's error; anything else means that the bucket does not answer. */
  #away(error: unknown): unknown {
    const cause = error instanceof Error ? error.cause : undefined;
    if (error instanceof RelayError) return error;
    if (cause instanceof RelayError) return cause;
    const { code, message } = (cause ?? error) as { code?: string; message?: string };
    const { endpoint, bucket } = this.#options;
    return new RelayError(
      'STORE_UNAVAILABLE',
      `the bucket ${bucket} at ${endpoint} does not answer: ${code ?? message}`,
      {
        hint: 'Check `blobs` in the config file and that the service runs.',
        cause: error,
      },
    );
  }

  async #refused(answer: Response): Promise<RelayError> {
    const { bucket, endpoint } = this.#options;
    const text = await answer.text().catch(() => '');
    const code = element(text, 'Code') ?? `status ${answer.status}`;
    const reason = element(text, 'Message');
    const message = `the bucket ${bucket} at ${endpoint} refuses: ${code}${reason === undefined ? '' : ` (${reason})`}`;
    const isAway = answer.status >= 500 || answer.status === 429;
    return new RelayError(isAway ? 'STORE_UNAVAILABLE' : 'STORE_NOT_WRITABLE', message, {
      hint: 'Check `blobs` in the config file: endpoint, bucket, region, keys, and what the keys may do.',
    });
  }
}

/** The text of the first element of a name; answers of S3 are flat enough for this. */
function element(xml: string, name: string): string | undefined {
  const text = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml)?.[1];
  return text?.replace(/&(amp|lt|gt|quot|apos|#x?[0-9a-fA-F]+);/g, (_, entity: string) =>
    decodeEntity(entity),
  );
}

const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };

function decodeEntity(entity: string): string {
  const code = entity.startsWith('#x') ? Number.parseInt(entity.slice(2), 16) : Number(entity.slice(1));
  return ENTITIES[entity] ?? String.fromCodePoint(code);
}
