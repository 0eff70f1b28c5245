/**
 * Who may call (SPEC S14.3). A token always, unless the server was told otherwise; the file token may do everything, those in
 * the store what their scopes say. Host and Origin are checked for everybody, so that no page of another site gets in.
 */
import { randomUUID } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { dirname } from 'node:path';
import type { FastifyRequest } from 'fastify';
import type { Scope } from '#client';
import type { Clock } from '../base/clock.ts';
import { isStoreError, RelayError } from '../base/errors.ts';
import type { Committer } from '../engine/committer.ts';
import { hashToken, isSameToken, newTokenText } from '../engine/tokens.ts';
import type { TokenRow } from '../stores/rows.ts';
import type { Store } from '../stores/store.ts';
import type { Caller } from './context.ts';

/** Which scopes let a caller use a route. */
const GRANTED_BY: Readonly<Record<Scope, readonly Scope[]>> = {
  read: ['read', 'operate', 'admin'],
  operate: ['operate', 'admin'],
  worker: ['worker', 'admin'],
  admin: ['admin'],
};

const ANYONE: Caller = { name: 'anonymous', scopes: ['admin'] };
/** How long a token that was looked up is trusted; a revoked one ends within this time everywhere. */
const TRUST_MS = 2_000;
const TOUCH_MS = 60_000;
const CACHE_MAX = 1_000;

/** Reads a token file, or makes it; its owner alone may read it. Of servers that start at once, one makes it for all. */
export function ensureTokenFile(path: string): string {
  if (!existsSync(path)) makeTokenFile(path);
  const token = readFileSync(path, 'utf8').trim();
  if (token === '')
    throw new RelayError('INVALID_CONFIG', `the token file ${path} is empty`, {
      hint: 'remove it, and a new one is made',
    });
  chmodSync(path, 0o600);
  return token;
}

function makeTokenFile(path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  const draft = `${path}.${randomUUID()}`;
  writeFileSync(draft, `${newTokenText()}\n`, { mode: 0o600, flag: 'wx' });
  try {
    // The name comes with the whole content, and only if nobody has it.
    linkSync(draft, path);
  } catch (error) {
    // Some file systems have no links; there the last of several makers wins.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') renameSync(draft, path);
  } finally {
    rmSync(draft, { force: true });
  }
}

/** What the keeper of the door needs. */
export interface AuthOptions {
  readonly store: Store;
  readonly committer: Committer;
  readonly clock: Clock;
  /** The token that may do everything; null lets everybody in. */
  readonly ownToken: string | null;
}

/** Knows callers by their tokens. */
export class Auth {
  readonly #options: AuthOptions;
  readonly #known = new Map<string, { readonly row: TokenRow; readonly until: number }>();

  constructor(options: AuthOptions) {
    this.#options = options;
  }

  /** The caller of a request, if it may use a route of this scope. */
  async admit(request: FastifyRequest, scope: Scope): Promise<Caller> {
    const caller = await this.#callerOf(request);
    if (caller.scopes.some((own) => GRANTED_BY[scope].includes(own))) return caller;
    throw new RelayError('FORBIDDEN', `the token \`${caller.name}\` has no scope for this`, {
      hint: `it needs one of: ${GRANTED_BY[scope].join(', ')}`,
    });
  }

  /** Forgets what was looked up, after a token was made or ended here. */
  forget(): void {
    this.#known.clear();
  }

  async #callerOf({ headers }: FastifyRequest): Promise<Caller> {
    const { ownToken } = this.#options;
    if (ownToken === null) return ANYONE;
    const token = /^Bearer +([^\s]{1,500})$/i.exec(headers.authorization ?? '')?.[1];
    if (token === undefined) throw new RelayError('UNAUTHENTICATED', 'a token is needed');
    if (isSameToken(token, ownToken)) return { name: 'local', scopes: ['admin'] };
    const row = await this.#find(hashToken(token));
    if (row === null || row.revoked_at !== null)
      throw new RelayError('UNAUTHENTICATED', 'the token is not known here, or has been revoked');
    return { name: row.name, scopes: JSON.parse(row.scopes) as Scope[] };
  }

  async #find(hash: string): Promise<TokenRow | null> {
    const { store, clock } = this.#options;
    const now = clock.monotonic();
    const known = this.#known.get(hash);
    if (known !== undefined && known.until > now) return known.row;
    const row = await store
      .read((tx) => tx.tokens.byHash(hash))
      .catch((cause: unknown) => {
        // Whoever asks is not known yet, and need not hear where the store is.
        if (!isStoreError(cause)) throw cause;
        throw new RelayError('STORE_UNAVAILABLE', 'tokens cannot be looked up now', { cause });
      });
    if (row === null || !isSameToken(row.hash, hash)) return null;
    if (this.#known.size >= CACHE_MAX) this.#known.clear();
    this.#known.set(hash, { row, until: now + TRUST_MS });
    this.#touch(row);
    return row;
  }

  /** Notes the use of a token, about once a minute. */
  #touch(row: TokenRow): void {
    const { clock, committer } = this.#options;
    const now = clock.now();
    if (row.last_used_at !== null && now - row.last_used_at < TOUCH_MS) return;
    // When it was used is worth knowing, and never worth failing a request for.
    committer.commit((work) => work.tx.tokens.touch(row.id, now)).catch(() => {});
  }
}

/** Names under which a server may be called. An address is always one: only names can be bound to another machine. */
export function hostCheck(allowed: readonly string[]): (request: FastifyRequest) => void {
  const names = new Set([
    'localhost',
    hostname().toLowerCase(),
    ...allowed.map((name) => name.toLowerCase()),
  ]);
  return (request) => {
    const { host, origin } = request.headers;
    const name = hostnameOf(`http://${host ?? ''}`);
    if (name === null || !(names.has(name) || isAddress(name)))
      throw new RelayError('FORBIDDEN', `this server is not called \`${(host ?? '').slice(0, 200)}\``, {
        hint: 'start it with --allow-host NAME to be called by that name',
      });
    if (origin === undefined) return;
    if (sameOrigin(origin, host ?? '')) return;
    throw new RelayError('FORBIDDEN', 'pages of another site may not call this server');
  };
}

function sameOrigin(origin: string, host: string): boolean {
  try {
    return new URL(origin).host.toLowerCase() === host.toLowerCase();
  } catch {
    return false;
  }
}

function hostnameOf(url: string): string | null {
  try {
    return new URL(url).hostname.toLowerCase();
  } catch {
    return null;
  }
}

function isAddress(name: string): boolean {
  return /^\d{1,3}(\.\d{1,3}){3}$/.test(name) || /^\[[0-9a-f:.]+\]$/.test(name);
}
