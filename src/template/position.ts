/** From an offset in a template's source to the line and column a person looks for. Only errors pay for it. */
import { TemplateError } from './template.ts';

const QUOTED_CHARS_MAX = 80;

/** A TemplateError at an offset of a source. */
export function errorAt(
  source: string,
  offset: number,
  what: { kind: TemplateError['kind']; message: string; hint?: string | undefined },
): TemplateError {
  let line = 1;
  let lineStart = 0;
  for (let next = source.indexOf('\n'); next !== -1 && next < offset; next = source.indexOf('\n', next + 1)) {
    line++;
    lineStart = next + 1;
  }
  return new TemplateError(
    what.kind,
    what.message,
    { offset, line, column: offset - lineStart + 1 },
    what.hint,
  );
}

/** A syntax error at an offset of a source. */
export function syntaxError(source: string, offset: number, message: string, hint?: string): TemplateError {
  return errorAt(source, offset, { kind: 'syntax', message, hint });
}

/** Source text between backticks, cut so that a message stays readable. */
export function quoted(text: string): string {
  return text.length > QUOTED_CHARS_MAX ? `\`${text.slice(0, QUOTED_CHARS_MAX)}…\`` : `\`${text}\``;
}
