/** Tokens (SPEC S14.3): made once, kept as a hash, compared in constant time. */
import { createHash, randomBytes, randomUUID, timingSafeEqual } from 'node:crypto';
import type { TokenRow } from '../stores/rows.ts';

/** What a token may do. */
export type TokenScope = 'read' | 'operate' | 'worker' | 'admin';

/** A new token and the row that knows it by its hash. */
export function createToken(options: {
  readonly name: string;
  readonly scopes: readonly TokenScope[];
  readonly now: number;
}): { readonly row: TokenRow; readonly token: string } {
  const token = newTokenText();
  const row: TokenRow = {
    id: randomUUID(),
    name: options.name,
    scopes: JSON.stringify([...new Set(options.scopes)]),
    hash: hashToken(token),
    created_at: options.now,
    last_used_at: null,
    revoked_at: null,
  };
  return { row, token };
}

/** The text of a new token. The prefix lets people and scanners see what it is. */
export function newTokenText(): string {
  return `relay_${randomBytes(32).toString('base64url')}`;
}

/** What is kept of a token. It has 256 bits of chance, so a plain hash is enough. */
export function hashToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** Whether two texts are the same, in a time that does not depend on where they differ. */
export function isSameToken(one: string, other: string): boolean {
  return timingSafeEqual(Buffer.from(hashToken(one)), Buffer.from(hashToken(other)));
}

/** A token as its owner may see it again. */
export function toTokenView(row: TokenRow) {
  const iso = (ms: number): string => new Date(ms).toISOString();
  return {
    id: row.id,
    name: row.name,
    scopes: JSON.parse(row.scopes) as TokenScope[],
    created_at: iso(row.created_at),
    last_used_at: row.last_used_at === null ? null : iso(row.last_used_at),
    revoked_at: row.revoked_at === null ? null : iso(row.revoked_at),
  };
}
