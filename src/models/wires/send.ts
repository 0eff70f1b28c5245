/**
 * Sends one request and gives the answer once its head is there. Node's own client, because `fetch` ends a silent answer after five
 * minutes whatever `request_timeout` says, follows redirects with the key in a header, and hides the network's error two causes deep.
 */
import { type IncomingMessage, request as overHttp } from 'node:http';
import { request as overHttps } from 'node:https';

/** Sends JSON and resolves with the answer; its body is read by the caller. The signal ends both. */
export function send(
  url: string,
  options: {
    readonly headers: Readonly<Record<string, string>>;
    readonly body: string;
    readonly signal: AbortSignal;
  },
): Promise<IncomingMessage> {
  const { headers, body, signal } = options;
  const bytes = Buffer.from(body);
  const start = url.startsWith('https:') ? overHttps : overHttp;
  return new Promise((resolve, reject) => {
    const sent = start(url, {
      method: 'POST',
      headers: {
        ...headers,
        'content-type': 'application/json',
        accept: 'text/event-stream, application/json',
        'content-length': String(bytes.length),
        'user-agent': 'relay',
      },
      signal,
      // A connection of its own: one that is kept and was closed meanwhile would fail a request that was never seen.
      agent: false,
    });
    sent.on('response', resolve);
    sent.on('error', reject);
    sent.end(bytes);
  });
}
