/** `relay outbox stats|dead-letters|replay|purge`: what waits for the broker, and what it has refused (SPEC S10.7). */
import type { Command } from 'commander';
import type { DeadMessageView, OutboxStatsView, Page, RelayApi } from '../../app/api.ts';
import { systemClock } from '../../base/clock.ts';
import { RelayError } from '../../base/errors.ts';
import type { CommandContext, CommonOptions } from '../command.ts';
import { withRelay } from '../connect.ts';
import { colorsFor, type Io, printJson } from '../io.ts';
import { renderTable } from '../render/table.ts';
import { plural } from '../render/text.ts';
import { agoText, spanText } from '../render/time.ts';
import { addSubcommand, wholeNumber } from '../subcommand.ts';

/** Adds `stats`. */
export function addStats(parent: Command, { io }: CommandContext): void {
  addSubcommand(parent, 'stats', {
    summary: 'count messages that wait, are under way, are dead',
    examples: [['relay outbox stats --json', 'for programs']],
  }).action(async (options: CommonOptions) => {
    await withRelay(options, io, async ({ api }) => {
      const stats = await api.outbox.stats();
      if (options.json === true) printJson(io, stats);
      else io.out.write(renderStats(stats));
    });
  });
}

function renderStats(stats: OutboxStatsView): string {
  const lines: readonly (readonly [string, string])[] = [
    ['to send now', `${stats.depth}`],
    ['oldest of them', stats.oldest_ms === null ? '-' : spanText(stats.oldest_ms)],
    ['not due yet', `${stats.delayed}`],
    ['in hand of a daemon', `${stats.in_flight}`],
    ['sent, not claimed yet', `${stats.outstanding}`],
    ['dead', `${stats.dead}`],
    ...(stats.unknown > 0 ? [['of a later version', `${stats.unknown}`] as const] : []),
  ];
  const width = Math.max(...lines.map(([name]) => name.length));
  return lines.map(([name, value]) => `${name.padEnd(width)}  ${value}\n`).join('');
}

interface ListOptions extends CommonOptions {
  readonly limit?: number;
  readonly cursor?: string;
}

/** Adds `dead-letters`. */
export function addDeadLetters(parent: Command, { io }: CommandContext): void {
  addSubcommand(parent, 'dead-letters', {
    summary: 'list messages that the broker has refused too often',
    examples: [['relay outbox dead-letters --limit 10', 'the first ten']],
  })
    .option('--limit <n>', 'how many, up to 1000 (default 100)', wholeNumber('--limit', 1))
    .option('--cursor <cursor>', 'go on where the last list ended')
    .action(async ({ limit = 100, cursor, ...options }: ListOptions) => {
      await withRelay(options, io, async ({ api }) => {
        const page = await api.outbox.deadLetters({ limit, cursor });
        if (options.json === true) printJson(io, page);
        else io.out.write(renderDead(page, io));
      });
    });
}

function renderDead({ items, next_cursor }: Page<DeadMessageView>, io: Io): string {
  if (items.length === 0) return 'No dead letters.\n';
  const colors = colorsFor(io.out, io.env);
  const now = systemClock.now();
  const table = renderTable(
    items,
    [
      { title: 'id', cell: ({ id }) => id },
      { title: 'task', cell: ({ task_id }) => ({ text: task_id, paint: colors.red }) },
      { title: 'run', cell: ({ run_id }) => run_id },
      { title: 'attempt', cell: ({ attempt }) => `${attempt}`, isNumber: true },
      { title: 'died', cell: ({ died_at }) => agoText(died_at, now), isNumber: true },
      { title: 'error', cell: ({ last_error }) => last_error ?? '' },
    ],
    { colors, output: io.out },
  );
  return next_cursor === null ? table : `${table}${colors.dim(`more with --cursor ${next_cursor}`)}\n`;
}

interface ChoiceOptions extends CommonOptions {
  readonly all?: boolean;
  readonly dryRun?: boolean;
  readonly yes?: boolean;
}

/** Adds `replay`. */
export function addReplay(parent: Command, { io }: CommandContext): void {
  addSubcommand(parent, 'replay', {
    summary: 'send dead letters again, as far as their tasks still wait',
    examples: [
      ['relay outbox replay 12 15', 'two of them'],
      ['relay outbox replay --all --dry-run', 'say what would be sent'],
    ],
  })
    .argument('[id...]', 'ids from `relay outbox dead-letters`')
    .option('--all', 'all of them')
    .option('--dry-run', 'only say what would be sent')
    .action(async (ids: readonly string[], options: ChoiceOptions) => {
      const dry_run = options.dryRun === true;
      await withRelay(options, io, async ({ api }) => {
        const done = await inParts(api, 'replay', { ids, isAll: options.all === true, dry_run });
        if (options.json === true) printJson(io, { items: done, next_cursor: null, dry_run });
        else
          io.out.write(
            `${plural(done.length, 'dead letter')} ${dry_run ? 'would be sent again' : 'taken off the list; those whose tasks still wait are sent again'}\n`,
          );
      });
    });
}

/** Adds `purge`. */
export function addPurge(parent: Command, { io }: CommandContext): void {
  addSubcommand(parent, 'purge', {
    summary: 'take dead letters off the list; their tasks stay claimable',
    examples: [
      ['relay outbox purge --all', 'say what would go'],
      ['relay outbox purge --all --yes', 'take them off'],
    ],
  })
    .argument('[id...]', 'ids from `relay outbox dead-letters`')
    .option('--all', 'all of them')
    .option('--dry-run', 'only say what would go; this is the default')
    .option('-y, --yes', 'take them off')
    .action(async (ids: readonly string[], options: ChoiceOptions) => {
      const dry_run = options.yes !== true || options.dryRun === true;
      await withRelay(options, io, async ({ api }) => {
        const done = await inParts(api, 'purge', { ids, isAll: options.all === true, dry_run });
        if (options.json === true) printJson(io, { items: done, next_cursor: null, dry_run });
        else
          io.out.write(
            `${plural(done.length, 'dead letter')} ${dry_run ? 'would go; --yes takes them off' : 'taken off the list'}\n`,
          );
      });
    });
}

/** Named ones, or all, page by page. */
async function inParts(
  api: RelayApi,
  action: 'replay' | 'purge',
  {
    ids,
    isAll,
    dry_run,
  }: { readonly ids: readonly string[]; readonly isAll: boolean; readonly dry_run: boolean },
): Promise<readonly string[]> {
  if (ids.length > 0) return (await api.outbox[action]({ ids, dry_run })).ids;
  if (!isAll)
    throw new RelayError('USAGE', 'name dead letters by id, or all with --all', {
      hint: '`relay outbox dead-letters` lists them',
    });
  const done: string[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await api.outbox.deadLetters({ limit: 1_000, cursor });
    const found = page.items.map(({ id }) => id);
    if (found.length > 0) done.push(...(await api.outbox[action]({ ids: found, dry_run })).ids);
    if (page.next_cursor === null) return done;
    cursor = page.next_cursor;
  }
}
