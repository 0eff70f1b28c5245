/** Inputs of a run as they are typed: `-i name=value` by the declared type, and whole files. */
import { resolve } from 'node:path';
import { decodeText, readTextFile, tooLarge } from '../app/workflow-file.ts';
import { RelayError } from '../base/errors.ts';
import { parseSource } from '../definition/document.ts';
import type { Io } from './io.ts';
import { pairs } from './subcommand.ts';

type Schemas = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

const INPUT_BYTES_MAX = 8 * 1024 * 1024;

/** The inputs that a command line gives; single ones win over the file. */
export async function readInputs(
  given: { readonly input?: readonly string[]; readonly inputFile?: string },
  declared: unknown,
  io: Io,
): Promise<Readonly<Record<string, unknown>>> {
  const fromFile = given.inputFile === undefined ? {} : await readInputFile(given.inputFile, io);
  const schemas = (declared ?? {}) as Schemas;
  const typed = Object.entries(pairs('-i', given.input)).map(([name, text]) => [
    name,
    readInput(name, text, schemas[name] ?? {}),
  ]);
  return { ...fromFile, ...Object.fromEntries(typed) };
}

/** A string stays text; the other types are JSON; without a type it is JSON when it reads as something other than a string. */
function readInput(name: string, text: string, schema: Readonly<Record<string, unknown>>): unknown {
  const types: readonly unknown[] = Array.isArray(schema.type)
    ? schema.type
    : schema.type === undefined
      ? []
      : [schema.type];
  if (types.length > 0 && types.every((type) => type === 'string')) return text;
  const parsed = parseJson(text);
  const isText = parsed === undefined || typeof parsed === 'string';
  if (!isText) return parsed;
  if (types.length === 0 || types.includes('string')) return text;
  throw new RelayError('INVALID_INPUT', `\`${name}\` must be ${types.join(' or ')}, not \`${text}\``, {
    hint: types.includes('array') || types.includes('object') ? `write JSON: -i '${name}=[1, 2]'` : undefined,
  });
}

async function readInputFile(file: string, io: Io): Promise<Readonly<Record<string, unknown>>> {
  const text =
    file === '-' ? await readStdin(io) : readTextFile(resolve(io.cwd, file), INPUT_BYTES_MAX, file);
  const { value, findings } = parseSource(text);
  const problem = findings.find(({ code }) => code !== 'empty_file');
  if (problem !== undefined) throw new RelayError('INVALID_INPUT', `${file}: ${problem.message}`);
  if (value === undefined || value === null) return {};
  if (typeof value === 'object' && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new RelayError('INVALID_INPUT', `${file} must hold a mapping of input names to values`);
}

async function readStdin(io: Io): Promise<string> {
  const bytes = await io.readStdin(INPUT_BYTES_MAX);
  if (bytes === null) throw tooLarge('stdin', INPUT_BYTES_MAX);
  return decodeText('stdin', bytes);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
