/** AWS Signature Version 4 for S3: the headers that prove who sends a request, and that nobody has changed it. Pure. */
import { createHash, createHmac } from 'node:crypto';

/** Whose request it is. */
export interface AwsCredentials {
  readonly accessKey: string;
  readonly secretKey: string;
  readonly region: string;
}

/** What is signed. */
export interface SignedRequest {
  readonly method: string;
  /** With the path and query as they are sent. */
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  /** SHA-256 of the body, in hex. */
  readonly payloadHash: string;
  /** Milliseconds. */
  readonly at: number;
}

/** SHA-256 of no body at all. */
export const EMPTY_HASH = createHash('sha256').digest('hex');

/** The headers to send, the signature among them. `host` is signed, and sent by whoever sends the request. */
export function signRequest(request: SignedRequest, credentials: AwsCredentials): Record<string, string> {
  const { method, url, payloadHash, at } = request;
  const time = new Date(at).toISOString().replace(/[-:]|\.\d{3}/g, '');
  const sent: Record<string, string> = {
    ...request.headers,
    'x-amz-content-sha256': payloadHash,
    'x-amz-date': time,
  };
  const signed = Object.entries({ ...sent, host: url.host })
    .map(([name, value]) => [name.toLowerCase(), value.trim().replace(/ +/g, ' ')] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const names = signed.map(([name]) => name).join(';');
  const canonical = [
    method,
    url.pathname.split('/').map(reEncoded).join('/'),
    canonicalQuery(url),
    ...signed.map(([name, value]) => `${name}:${value}`),
    '',
    names,
    payloadHash,
  ].join('\n');
  const scope = `${time.slice(0, 8)}/${credentials.region}/s3/aws4_request`;
  const text = ['AWS4-HMAC-SHA256', time, scope, sha256(canonical)].join('\n');
  const signature = hmac(signingKey(credentials, scope), text).toString('hex');
  const credential = `${credentials.accessKey}/${scope}`;
  sent.authorization = `AWS4-HMAC-SHA256 Credential=${credential},SignedHeaders=${names},Signature=${signature}`;
  return sent;
}

/** Everything but letters, digits and `-._~` is written as bytes. */
export function uriEncoded(text: string): string {
  return encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function reEncoded(text: string): string {
  return uriEncoded(decodeURIComponent(text));
}

function canonicalQuery({ searchParams }: URL): string {
  return [...searchParams]
    .map(([name, value]) => `${uriEncoded(name)}=${uriEncoded(value)}`)
    .sort()
    .join('&');
}

function signingKey({ secretKey }: AwsCredentials, scope: string): Buffer {
  return scope.split('/').reduce<Buffer>((key, part) => hmac(key, part), Buffer.from(`AWS4${secretKey}`));
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
