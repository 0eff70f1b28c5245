/** What was measured, as data and as tables. */
import type { Workload } from './contenders.ts';

/** The middle of several measurements, and how far they are apart. */
export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** Everything that one run of the bench has found. */
export interface Report {
  readonly tasks: Readonly<Record<Workload, number>>;
  readonly repeats: number;
  readonly results: readonly {
    readonly contender: string;
    readonly workloads: readonly {
      readonly workload: Workload;
      readonly in_flight: number;
      readonly tasks_per_s: Spread;
      readonly hop_p50_ms: Spread;
    }[];
  }[];
  /** Rates, or for chains the inverse of hops: below 1 the kept store is slower. */
  readonly kept: readonly {
    readonly contender: string;
    readonly workload: Workload;
    readonly tasks_before: number;
    readonly kept_over_fresh: Spread;
  }[];
  /** Diamonds on one Postgres, tasks per second. */
  readonly processes: { readonly one: Spread; readonly two: Spread };
}

/** Median, least and most. */
export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (index: number): number => sorted[index] ?? Number.NaN;
  return { median: at(Math.floor(sorted.length / 2)), min: at(0), max: at(sorted.length - 1) };
}

/** Tables in Markdown, as docs/performance.md shows them. */
export function render({ tasks, repeats, results, kept, processes }: Report): string {
  const titles: Readonly<Record<Workload, string>> = {
    fanout: `fan-out of ${tasks.fanout - 2}, tasks/s`,
    chain: `chain of ${tasks.chain}, ms a hop, p50`,
    diamonds: `${tasks.diamonds / 4} diamonds, tasks/s`,
  };
  const names = results.map(({ contender }) => contender);
  const cells = (workload: Workload, show: (found: Found, contender: string) => string): string[] =>
    results.map(({ contender, workloads }) => {
      const found = workloads.find((each) => each.workload === workload);
      return found === undefined ? '' : show(found, contender);
    });
  const workloads: readonly Workload[] = ['fanout', 'chain', 'diamonds'];
  const against = (peer: string): string[][] =>
    workloads.map((workload) => {
      const base = value(results, peer, workload);
      return [
        titles[workload],
        ...cells(workload, (_, name) => times(value(results, name, workload) / base)),
      ];
    });
  return [
    `Medians of ${repeats}, least and most behind them.`,
    table(
      ['', ...names],
      workloads.map((workload) => [titles[workload], ...cells(workload, shown)]),
    ),
    table(
      ['in flight', ...names],
      workloads.map((workload) => [titles[workload], ...cells(workload, (found) => String(found.in_flight))]),
    ),
    table(['against BullMQ', ...names], against('BullMQ, Redis')),
    table(['against DBOS', ...names], against('DBOS, Postgres')),
    table(
      ['kept against fresh', 'after', 'ratio'],
      kept.map((each) => [
        `${each.contender}, ${each.workload}`,
        `${each.tasks_before} tasks`,
        ratio(each.kept_over_fresh),
      ]),
    ),
    table(
      ['diamonds on one Postgres', 'tasks/s'],
      [
        ['one process', range(processes.one, 0)],
        ['two processes', range(processes.two, 0)],
        ['two against one', times(processes.two.median / processes.one.median)],
      ],
    ),
    '',
  ].join('\n\n');
}

type Found = Report['results'][number]['workloads'][number];

function shown({ workload, tasks_per_s, hop_p50_ms }: Found): string {
  return workload === 'chain' ? range(hop_p50_ms, 2) : range(tasks_per_s, 0);
}

function value(results: Report['results'], contender: string, workload: Workload): number {
  const found = results
    .find((each) => each.contender === contender)
    ?.workloads.find((each) => each.workload === workload);
  return (workload === 'chain' ? found?.hop_p50_ms : found?.tasks_per_s)?.median ?? Number.NaN;
}

function range({ median, min, max }: Spread, digits: number): string {
  const text = (number: number): string =>
    number.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return `${text(median)} (${text(min)}–${text(max)})`;
}

function ratio({ median, min, max }: Spread): string {
  return `${times(median)} (${min.toFixed(2)}–${max.toFixed(2)})`;
}

function times(value: number): string {
  return `${value.toFixed(2)} ×`;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(head), `|${'---|'.repeat(head.length)}`, ...rows.map(line)].join('\n');
}
