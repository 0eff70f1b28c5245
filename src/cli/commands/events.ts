/** `relay events`: the record of every committed change, in pages or as it happens (SPEC S12.2). */
import type { EventView, RelayApi } from '../../app/api.ts';
import { RelayError } from '../../base/errors.ts';
import { didYouMean } from '../../base/suggest.ts';
import { EVENT_TYPES } from '../../domain/event-types.ts';
import { type BuildCommand, type CommandContext, type CommonOptions, examples } from '../command.ts';
import { withRelay } from '../connect.ts';
import { untilChanged } from '../follow/follow-run.ts';
import { colorsFor, type Io, printJson } from '../io.ts';
import { renderEvent } from '../render/event.ts';
import { wholeNumber } from '../subcommand.ts';

interface EventOptions extends CommonOptions {
  readonly run?: string;
  readonly types?: string;
  readonly after?: string;
  readonly limit?: number;
  readonly follow?: boolean;
}

interface Filter {
  readonly run_id: string | undefined;
  readonly types: readonly string[] | undefined;
}

const POLL_MS = 200;
const PAGE = 1_000;

export const buildEvents: BuildCommand = (command, context) => {
  command
    .option('--run <run>', 'events of this run')
    .option('--types <list>', 'only these, with commas between; task.* is all of tasks')
    .option('--after <cursor>', 'only what came after this event')
    .option('--limit <n>', 'how many, up to 1000 (default 100)', wholeNumber('--limit', 1))
    .option('-f, --follow', 'go on as they happen; with --json one object a line')
    .addHelpText(
      'after',
      examples([
        ['relay events --run RUN_ID', 'what happened in a run'],
        ['relay events --follow --types run.*', 'every run as it starts and ends'],
        ['relay events --after 1200 --json', 'a page; next_cursor is where the next one starts'],
      ]),
    )
    .action((options: EventOptions) => events(options, context));
};

async function events(options: EventOptions, { io }: CommandContext): Promise<void> {
  const filter = { run_id: options.run, types: typesOf(options.types) };
  await withRelay(options, io, async ({ api }) => {
    if (options.follow === true) {
      await follow(api, filter, options, io);
      return;
    }
    const page = await api.events.page({ ...filter, cursor: options.after, limit: options.limit ?? 100 });
    if (options.json === true) printJson(io, page);
    else {
      const colors = colorsFor(io.out, io.env);
      for (const event of page.items) io.out.write(renderEvent(event, colors));
      if (page.items.length === (options.limit ?? 100))
        io.out.write(colors.dim(`more with --after ${page.next_cursor}\n`));
    }
  });
}

async function follow(api: RelayApi, filter: Filter, options: EventOptions, io: Io): Promise<void> {
  const leaving = new AbortController();
  const stopListening = io.onInterrupt(() => leaving.abort());
  const colors = colorsFor(io.out, io.env);
  const print = (event: EventView): void =>
    io.out.write(options.json === true ? `${JSON.stringify(event)}\n` : renderEvent(event, colors));
  try {
    for (let cursor = options.after; !leaving.signal.aborted; ) {
      const changed = untilChanged(api, leaving.signal, POLL_MS);
      const page = await api.events.page({ ...filter, cursor, limit: PAGE });
      cursor = page.next_cursor ?? cursor;
      for (const event of page.items) print(event);
      if (page.items.length < PAGE) await changed;
    }
  } finally {
    leaving.abort();
    stopListening();
  }
}

function typesOf(list: string | undefined): readonly string[] | undefined {
  return list?.split(',').flatMap((wanted) => {
    const name = wanted.trim();
    const types = EVENT_TYPES.filter((type) =>
      name.endsWith('*') ? type.startsWith(name.slice(0, -1)) : type === name,
    );
    if (types.length > 0) return types;
    throw new RelayError('USAGE', `there is no event type \`${name}\``, {
      hint: didYouMean(name, EVENT_TYPES) ?? EVENT_TYPES.join(', '),
    });
  });
}
