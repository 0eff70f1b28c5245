/** Asks a person in the terminal: yes or no, the fields of a form one by one, or a reason for a no (SPEC S7.3). */
import type { ApprovalView } from '../../app/api.ts';
import { colorsFor, type Io } from '../io.ts';
import { taskName } from '../render/run.ts';
import { indent, manyLines, oneLine } from '../render/text.ts';
import { type Field, fieldsOf, readField, typeText } from './form.ts';

/** What somebody decided. */
export type Answered =
  | { readonly kind: 'approve'; readonly answer?: unknown }
  | { readonly kind: 'reject'; readonly reason?: string };

/** Asks; null when nobody answers (the input has ended, or the question is withdrawn). */
export async function ask(question: ApprovalView, io: Io, signal: AbortSignal): Promise<Answered | null> {
  const colors = colorsFor(io.out, io.env);
  io.out.write(`\n${colors.magenta('?')} ${colors.bold(oneLine(taskName(question)))}\n`);
  io.out.write(`${indent(manyLines(question.message), 2)}\n`);
  const fields = fieldsOf(question.schema);
  // A worker's question is about its fields; a yes to it says nothing.
  const isForm = question.kind === 'worker' && (fields === null || fields.length > 0);
  if (!isForm) {
    const isYes = await askYesNo(io, signal);
    if (isYes === null) return null;
    if (!isYes) return askReason(io, signal);
  }
  if (fields === null) {
    const whole = { name: 'answer', schema: question.schema as Field['schema'], isRequired: true };
    const value = await askField(whole, io, signal);
    return value === null ? null : { kind: 'approve', answer: value.value };
  }
  if (fields.length === 0) return { kind: 'approve' };
  const answer: Record<string, unknown> = {};
  for (const field of fields) {
    const value = await askField(field, io, signal);
    if (value === null) return null;
    if (value.value !== undefined) answer[field.name] = value.value;
  }
  return { kind: 'approve', answer };
}

async function askYesNo(io: Io, signal: AbortSignal): Promise<boolean | null> {
  for (;;) {
    io.out.write('  Approve? (y/n) ');
    const line = await io.input.readLine(signal);
    if (line === null) return null;
    if (/^\s*y(es)?\s*$/i.test(line)) return true;
    if (/^\s*no?\s*$/i.test(line)) return false;
  }
}

async function askReason(io: Io, signal: AbortSignal): Promise<Answered | null> {
  io.out.write('  Why not? (may be empty) ');
  const reason = (await io.input.readLine(signal))?.trim();
  if (reason === undefined) return null;
  return reason === '' ? { kind: 'reject' } : { kind: 'reject', reason };
}

async function askField(field: Field, io: Io, signal: AbortSignal): Promise<{ value: unknown } | null> {
  const colors = colorsFor(io.out, io.env);
  const { title, description, default: preset } = field.schema;
  const label = typeof title === 'string' ? title : field.name;
  if (typeof description === 'string') io.out.write(`  ${colors.dim(oneLine(description))}\n`);
  const hints = [
    typeText(field.schema),
    ...(preset === undefined ? [] : [`empty: ${JSON.stringify(preset)}`]),
    ...(field.isRequired || preset !== undefined ? [] : ['may be empty']),
  ];
  for (;;) {
    io.out.write(`  ${oneLine(label)} ${colors.dim(`(${oneLine(hints.join('; '))})`)}: `);
    const line = await io.input.readLine(signal);
    if (line === null) return null;
    const read = await readField(field, line);
    if ('value' in read) return read;
    io.out.write(`  ${colors.red(oneLine(read.problem))}\n`);
  }
}
