/** Data of a run for people's eyes: short text as it is, everything else as YAML-like JSON, bounded. */
import type { Colors } from '../io.ts';
import { indent, manyLines } from './text.ts';

const CHARS_MAX = 20_000;

/** Named values, one below the other. */
export function renderValues(values: Readonly<Record<string, unknown>>, colors: Colors): string {
  return Object.entries(values)
    .map(([name, value]) => renderValue(name, value, colors))
    .join('');
}

function renderValue(name: string, value: unknown, colors: Colors): string {
  const text = valueText(value);
  const isShort = !text.includes('\n') && name.length + text.length < 90;
  const label = colors.bold(manyLines(name));
  return isShort ? `  ${label}: ${text}\n` : `  ${label}:\n${indent(text, 4)}\n`;
}

/** A value as text: strings without quotes, the rest as JSON. */
export function valueText(value: unknown): string {
  const text = typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? 'null');
  const bounded =
    text.length > CHARS_MAX
      ? `${text.slice(0, CHARS_MAX)}\n… ${text.length - CHARS_MAX} more characters`
      : text;
  return manyLines(bounded.trimEnd());
}
