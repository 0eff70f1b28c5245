/** Brings a file's schema up to date: forward only, checksummed, one process at a time (SPEC S14.1). */
import { RelayError } from '../../base/errors.ts';
import { readMigrations } from '../statements.ts';
import type { Driver } from './driver.ts';

/** Applies what is missing in one transaction. Refuses a schema from a later build that this one may not touch. */
export function migrate(driver: Driver): { applied: readonly string[] } {
  driver.exec('begin immediate');
  try {
    driver.exec(
      'create table if not exists schema_migrations (name text primary key, checksum text not null, is_breaking integer not null, applied_at text not null)',
    );
    const known = readMigrations('sqlite');
    const recorded = driver.prepare('select name, checksum, is_breaking from schema_migrations').all();
    for (const row of recorded) {
      const own = known.find((migration) => migration.name === row.name);
      if (own === undefined && row.is_breaking === 1) {
        throw new RelayError(
          'STORE_TOO_NEW',
          `the store has the migration ${row.name}, which this build does not know`,
        );
      }
      if (own !== undefined && own.checksum !== row.checksum) {
        throw new RelayError('STORE_CORRUPT', `the migration ${row.name} was applied with another content`);
      }
    }
    const missing = known.filter((migration) => !recorded.some((row) => row.name === migration.name));
    const record = driver.prepare("insert into schema_migrations values (?, ?, ?, datetime('now'))");
    for (const { name, sql, checksum, isBreaking } of missing) {
      driver.exec(sql);
      record.run(name, checksum, isBreaking ? 1 : 0);
    }
    driver.exec('commit');
    return { applied: missing.map((migration) => migration.name) };
  } catch (error) {
    driver.exec('rollback');
    throw error;
  }
}
