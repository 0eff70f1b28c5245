/** Questions that wait for a person, with what to type. */
import type { ApprovalView, Page } from '../../app/api.ts';
import { fieldsOf, typeText } from '../follow/form.ts';
import type { Colors } from '../io.ts';
import { taskArgument, taskName } from './run.ts';
import { indent, manyLines, oneLine } from './text.ts';

/** One block per question. */
export function renderApprovals(
  { items, next_cursor }: Page<ApprovalView>,
  colors: Colors,
  flags: string,
): string {
  if (items.length === 0) return 'Nothing waits for a person.\n';
  const blocks = items.map((question) => renderQuestion(question, colors, flags));
  if (next_cursor !== null) blocks.push(colors.dim(`more with --cursor ${next_cursor}\n`));
  return blocks.join('\n');
}

function renderQuestion(question: ApprovalView, colors: Colors, flags: string): string {
  const { run_id, workflow_name, message, schema, timeout_at, kind } = question;
  const head = `${colors.magenta('?')} ${colors.bold(oneLine(taskName(question)))} ${colors.dim(`of ${oneLine(workflow_name ?? 'an open run')}`)}\n`;
  const fields = fieldsOf(schema) ?? [];
  const form = fields
    .map(
      ({ name, schema: type, isRequired }) =>
        `    ${oneLine(name)}${isRequired ? '' : '?'}: ${oneLine(typeText(type))}\n`,
    )
    .join('');
  const typed = fields.filter((field) => field.isRequired).map(({ name }) => ` --field ${name}=…`);
  const until = timeout_at === null ? '' : colors.dim(`  until ${timeout_at}\n`);
  const verb = kind === 'worker' ? 'answer' : 'approve';
  const task = taskArgument(question);
  const reject = `  ${colors.dim(`relay approvals reject ${run_id} ${task}${flags}`)}\n`;
  return `${head}${indent(manyLines(message), 2)}\n${form}${until}  ${colors.dim(`relay approvals ${verb} ${run_id} ${task}${typed.join('')}${flags}`)}\n${reject}`;
}
