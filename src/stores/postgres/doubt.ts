/** Whether a transaction has committed whose connection was lost before it could tell. Null means that it is still under way. */
import { TASK_SHAPE } from '../row-shapes.ts';
import type { Session } from './session.ts';
import type { Transaction } from './transaction.ts';

/** By its number. */
export async function askAfterNumber(reader: Session, xid: string): Promise<boolean | null> {
  const text = 'select pg_xact_status($1::text::xid8)';
  const [[[status] = []] = []] = await reader.send([{ name: '', text, params: [xid] }]);
  return status === 'in progress' ? null : status === 'committed';
}

/** By one of the rows it wrote, once its session has ended: nobody else writes the same leases, versions and moments. */
export async function askAfterWritten(
  reader: Session,
  session: Session,
  sample: Transaction['sample'],
): Promise<boolean | null> {
  if (sample === null) return false;
  const [[[isRunning] = []] = [], [row = []] = []] = await reader.send([
    {
      name: '',
      text: 'select count(*) from pg_stat_activity where pid = $1::integer',
      params: [String(session.processId)],
    },
    {
      name: '',
      text: `select ${TASK_SHAPE.columns.join(', ')} from task_runs where key = $1::bigint`,
      params: [String(sample.key)],
    },
  ]);
  if (sample.list.every((value, index) => value === row[index])) return true;
  return isRunning === 0 ? false : null;
}
