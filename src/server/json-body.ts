/** Bodies: JSON of bounded depth, or bytes where a route takes them. Anything else is refused before it is read. */
import type { FastifyInstance } from 'fastify';
import { RelayError } from '../base/errors.ts';

/** Deeper values could take down whoever walks through them. */
const DEPTH_MAX = 200;

/** Reads `application/json` with our bounds; an empty body is an empty object. */
export function readJsonBodies(app: FastifyInstance): void {
  const parse = app.getDefaultJsonParser('error', 'error');
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    const bytes = body as Buffer;
    if (bytes.length === 0) {
      done(null, {});
      return;
    }
    if (bytes.length > DEPTH_MAX && depthOf(bytes) > DEPTH_MAX) {
      done(new RelayError('USAGE', `the body is nested deeper than ${DEPTH_MAX} levels`));
      return;
    }
    // The parser answers through `done` alone.
    void parse(request, bytes.toString('utf8'), done);
  });
  // Read by its route, piece by piece.
  app.addContentTypeParser('application/octet-stream', (_, body, done) => done(null, body));
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** How deep brackets are nested, outside of texts. */
function depthOf(bytes: Buffer): number {
  let depth = 0;
  let deepest = 0;
  let isText = false;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at];
    if (isText) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) isText = false;
    } else if (byte === QUOTE) isText = true;
    else if (byte === 0x5b || byte === 0x7b) {
      depth += 1;
      if (depth > deepest) deepest = depth;
    } else if (byte === 0x5d || byte === 0x7d) depth -= 1;
  }
  return deepest;
}
