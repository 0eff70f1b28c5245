/** Brings a database's schema up to date: forward only, checksummed, one process at a time (SPEC S14.1). */
import type { ClientBase } from 'pg';
import { RelayError } from '../../base/errors.ts';
import { readMigrations } from '../statements.ts';

/** Everybody who migrates a database of Relay takes this lock; the number is only a name. */
const MIGRATION_LOCK = 7_295_001;

interface Recorded {
  readonly name: string;
  readonly checksum: string;
  readonly is_breaking: boolean;
}

/** Applies what is missing in one transaction. Refuses a schema from a later build that this one may not touch. */
export async function migrate(client: ClientBase): Promise<{ applied: readonly string[] }> {
  await client.query('begin');
  try {
    await client.query('select pg_advisory_xact_lock($1)', [MIGRATION_LOCK]);
    // Asked first: `create … if not exists` needs rights that a plain user of a migrated database may not have.
    const { rows: tables } = await client.query<{ is_there: boolean }>(
      "select to_regclass('schema_migrations') is not null as is_there",
    );
    if (tables[0]?.is_there !== true)
      await client.query(
        'create table schema_migrations (name text primary key, checksum text not null, is_breaking boolean not null, applied_at timestamptz not null default now())',
      );
    const known = readMigrations('postgres');
    const { rows } = await client.query<Recorded>(
      'select name, checksum, is_breaking from schema_migrations',
    );
    for (const row of rows) {
      const own = known.find((migration) => migration.name === row.name);
      if (own === undefined && row.is_breaking) {
        throw new RelayError(
          'STORE_TOO_NEW',
          `the store has the migration ${row.name}, which this build does not know`,
        );
      }
      if (own !== undefined && own.checksum !== row.checksum) {
        throw new RelayError('STORE_CORRUPT', `the migration ${row.name} was applied with another content`);
      }
    }
    const missing = known.filter((migration) => !rows.some((row) => row.name === migration.name));
    for (const { name, sql, checksum, isBreaking } of missing) {
      await client.query(sql);
      await client.query('insert into schema_migrations (name, checksum, is_breaking) values ($1, $2, $3)', [
        name,
        checksum,
        isBreaking,
      ]);
    }
    await client.query('commit');
    return { applied: missing.map((migration) => migration.name) };
  } catch (error) {
    await client.query('rollback').catch(() => {
      // The connection is gone, and the transaction with it; the first error is the one to tell.
    });
    throw error;
  }
}
