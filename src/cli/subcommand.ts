/** What commands with subcommands share: `relay runs list` is the subcommand `list` of the command `runs`. */
import type { Command } from 'commander';
import { RelayError } from '../base/errors.ts';
import { examples } from './command.ts';

/** Adds a subcommand with its summary and examples; arguments, options and action are the caller's. */
export function addSubcommand(
  parent: Command,
  name: string,
  what: { readonly summary: string; readonly examples: readonly (readonly [string, string])[] },
): Command {
  return parent
    .command(name)
    .summary(what.summary)
    .description(`${what.summary.charAt(0).toUpperCase()}${what.summary.slice(1)}.`)
    .addHelpText('after', examples(what.examples));
}

/** Reads a whole number of an option, for commander. */
export function wholeNumber(option: string, least: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (text.trim() !== '' && Number.isSafeInteger(value) && value >= least) return value;
    throw new RelayError('USAGE', `${option} must be a whole number from ${least}, not \`${text}\``);
  };
}

/** Collects the values of an option that may be given several times, for commander. */
export function collect(value: string, before: readonly string[] = []): readonly string[] {
  return [...before, value];
}

/** Splits `name=value` pairs; the last one of a name counts. */
export function pairs(option: string, list: readonly string[] = []): Readonly<Record<string, string>> {
  return Object.fromEntries(
    list.map((text) => {
      const at = text.indexOf('=');
      if (at <= 0)
        throw new RelayError('USAGE', `${option} takes NAME=VALUE, not \`${text}\``, {
          hint: `for example: ${option} team=docs`,
        });
      return [text.slice(0, at), text.slice(at + 1)];
    }),
  );
}
