/** `relay approvals …`: what waits for a person, and the decision (SPEC S7.3). */
import type { Command } from 'commander';
import type { ApprovalView, RelayApi, TaskView } from '../../app/api.ts';
import { RelayError } from '../../base/errors.ts';
import { type BuildCommand, type CommandContext, type CommonOptions, examples } from '../command.ts';
import { withRelay } from '../connect.ts';
import { findTask } from '../find-task.ts';
import { defaultAnswer, fieldsOf, readTyped } from '../follow/form.ts';
import { colorsFor, printJson } from '../io.ts';
import { nextFlags } from '../next-flags.ts';
import { renderApprovals } from '../render/approvals.ts';
import { taskArgument, taskName } from '../render/run.ts';
import { addSubcommand, collect, pairs, wholeNumber } from '../subcommand.ts';

export const buildApprovals: BuildCommand = (command, context) => {
  command.addHelpText(
    'after',
    examples([
      ['relay approvals list', 'what waits, with the form of each question'],
      ['relay approvals approve', 'the only question there is'],
      ['relay approvals reject RUN_ID draft --reason "too long"', 'one of several'],
    ]),
  );
  addList(command, context);
  addApprove(command, context);
  addReject(command, context);
  addAnswer(command, context);
};

interface ListOptions extends CommonOptions {
  readonly run?: string;
  readonly limit?: number;
  readonly cursor?: string;
}

function addList(parent: Command, { io }: CommandContext): void {
  addSubcommand(parent, 'list', {
    summary: 'list the questions that wait for a person',
    examples: [
      ['relay approvals list', 'of all runs'],
      ['relay approvals list --run RUN_ID', 'of one run'],
    ],
  })
    .option('--run <run>', 'questions of this run')
    .option('--limit <n>', 'how many, up to 1000 (default 100)', wholeNumber('--limit', 1))
    .option('--cursor <cursor>', 'go on where the last list ended')
    .action(async ({ run: run_id, limit = 100, cursor, ...options }: ListOptions) => {
      await withRelay(options, io, async ({ api }) => {
        const page = await api.approvals.list({ run_id, limit, cursor });
        if (options.json === true) printJson(io, page);
        else io.out.write(renderApprovals(page, colorsFor(io.out, io.env), nextFlags(options)));
      });
    });
}

interface DecisionOptions extends CommonOptions {
  readonly answer?: string;
  readonly field?: readonly string[];
  readonly reason?: string;
}

function decision(parent: Command, name: string, what: Parameters<typeof addSubcommand>[2]): Command {
  return addSubcommand(parent, name, what)
    .argument('[task-run]', 'the task run, or the run; may be left out when only one question waits')
    .argument('[task]', 'the task in that run, as the workflow names it');
}

function withForm(command: Command): Command {
  return command
    .option('--answer <json>', 'the answer to the form, as JSON')
    .option('--field <name=value>', 'one field of the form; may be repeated', collect);
}

function addApprove(parent: Command, context: CommandContext): void {
  withForm(
    decision(parent, 'approve', {
      summary: 'say yes to a gate or an approval',
      examples: [
        ['relay approvals approve RUN_ID draft', 'by run and task'],
        ['relay approvals approve TASK_RUN_ID --field amount=3', 'with a form, field by field'],
        [`relay approvals approve TASK_RUN_ID --answer '{"amount": 3}'`, 'or as JSON'],
      ],
    }),
  ).action((id: string | undefined, name: string | undefined, options: DecisionOptions) =>
    decide({ id, name }, options, context, (api, question) =>
      api.tasks.approve(question.task_run_id, {
        question_id: question.question_id,
        answer: answerOf(question, options) ?? defaultAnswer(question.schema)?.answer,
      }),
    ),
  );
}

function addReject(parent: Command, context: CommandContext): void {
  decision(parent, 'reject', {
    summary: 'say no to a gate or an approval',
    examples: [['relay approvals reject RUN_ID draft --reason "too expensive"', 'the reason is kept']],
  })
    .option('--reason <text>', 'why not')
    .action((id: string | undefined, name: string | undefined, options: DecisionOptions) =>
      decide({ id, name }, options, context, (api, { task_run_id, question_id }) =>
        api.tasks.reject(task_run_id, { question_id, reason: options.reason }),
      ),
    );
}

function addAnswer(parent: Command, context: CommandContext): void {
  withForm(
    decision(parent, 'answer', {
      summary: 'answer what a task asks while it works',
      examples: [['relay approvals answer RUN_ID triage --field severity=high', 'the task then goes on']],
    }),
  ).action((id: string | undefined, name: string | undefined, options: DecisionOptions) =>
    decide({ id, name }, options, context, (api, question) => {
      const answer = answerOf(question, options);
      if (answer === undefined)
        throw new RelayError('USAGE', 'give the answer with --answer or --field', {
          hint: fieldsOf(question.schema)
            ?.map((field) => `--field ${field.name}=…`)
            .join(' '),
        });
      return api.tasks.approve(question.task_run_id, { question_id: question.question_id, answer });
    }),
  );
}

async function decide(
  place: { readonly id: string | undefined; readonly name: string | undefined },
  options: DecisionOptions,
  { io }: CommandContext,
  act: (api: RelayApi, question: ApprovalView) => Promise<TaskView>,
): Promise<void> {
  await withRelay(options, io, async ({ api }) => {
    const task = await act(api, await findQuestion(api, place));
    if (options.json === true) printJson(io, task);
    else {
      const next = `\`relay resume ${task.run_id}${nextFlags(options)}\` carries the run on if nothing else does`;
      io.out.write(`task ${taskName(task)} is ${task.status}; ${next}\n`);
    }
  });
}

/** The question of a task run, of a task in a run, the only one of a run, or the only one of all. */
async function findQuestion(
  api: RelayApi,
  { id, name }: { readonly id: string | undefined; readonly name: string | undefined },
): Promise<ApprovalView> {
  const isRun = id !== undefined && name === undefined && (await api.runs.get(id).catch(() => null)) !== null;
  if (id !== undefined && !isRun) {
    const task = await findTask(api, id, name);
    if (task.question === null) {
      const message = `task ${taskName(task)} is ${task.status} and asks nothing`;
      throw new RelayError('NOT_WAITING', message);
    }
    const { run_id, task_run_id, task_id, map_index } = task;
    return { ...task.question, run_id, task_run_id, task_id, map_index, workflow_name: null };
  }
  const { items } = await api.approvals.list({ run_id: id, limit: 10 });
  const [only, ...others] = items;
  if (only === undefined) throw new RelayError('NOT_WAITING', 'nothing waits for a person');
  if (others.length === 0) return only;
  throw new RelayError('USAGE', `${others.length + 1} questions wait; name the one you mean`, {
    hint: items.map((question) => `${question.run_id} ${taskArgument(question)}`).join(', or '),
  });
}

function answerOf({ schema }: ApprovalView, { answer, field }: DecisionOptions): unknown {
  if (answer !== undefined && field !== undefined)
    throw new RelayError('USAGE', '--answer and --field cannot go together');
  if (answer !== undefined) {
    try {
      return JSON.parse(answer) as unknown;
    } catch (cause) {
      throw new RelayError('USAGE', `--answer is not JSON: ${(cause as Error).message}`, { cause });
    }
  }
  if (field === undefined) return undefined;
  const schemas = new Map((fieldsOf(schema) ?? []).map((each) => [each.name, each.schema]));
  const filled = (defaultAnswer(schema)?.answer ?? {}) as object;
  const typed = Object.entries(pairs('--field', field)).map(([name, text]) => [
    name,
    readTyped(text, schemas.get(name) ?? {}) ?? text,
  ]);
  return { ...filled, ...Object.fromEntries(typed) };
}
