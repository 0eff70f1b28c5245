/** The flags that a command to type next must repeat, so that it finds the same store. */
import { maskUrl } from '../app/config.ts';
import type { CommonOptions } from './command.ts';

/** For example ` --data other`; empty when nothing was said. A password is not repeated. */
export function nextFlags(options: CommonOptions): string {
  return (['config', 'data', 'store', 'server'] as const)
    .flatMap((name) => (options[name] === undefined ? [] : [` --${name} ${quote(maskUrl(options[name]))}`]))
    .join('');
}

function quote(text: string): string {
  return /^[\w./:@=-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
