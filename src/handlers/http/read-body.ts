/** The body of an answer as text, read up to a bound. */
import { AttemptFailure } from '../../domain/attempt-failure.ts';

const BODY_BYTES_MAX = 16 * 1024 * 1024;

/** Reads the whole body; one that is too long is given up as soon as that is known. */
export async function readBody(response: Response): Promise<string> {
  if (response.body === null) return '';
  const decoder = decoderFor(response.headers.get('content-type') ?? '');
  let bytes = 0;
  let text = '';
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > BODY_BYTES_MAX) {
      const message = `the answer is longer than ${BODY_BYTES_MAX} bytes`;
      throw new AttemptFailure({ kind: 'output', problem: 'too_long' }, message);
    }
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

function decoderFor(contentType: string): InstanceType<typeof TextDecoder> {
  const label = /charset="?([^\s;"]+)/i.exec(contentType)?.[1] ?? 'utf-8';
  try {
    return new TextDecoder(label);
  } catch {
    // An unknown charset is shown as well as can be, not refused.
    return new TextDecoder();
  }
}
