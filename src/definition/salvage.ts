/** Checks a shape and keeps what is right: wrong parts are reported and cut out, so that later checks see the rest. */
import type { z } from 'zod';
import type { Finding, Path, Problems, Translate } from './problem.ts';
import { checkShape, valueAt } from './schema-problems.ts';

const ROUNDS_MAX = 4;

/** Something valid to put in a place that must not be empty, so that the rest can be checked; undefined to leave it out. */
export type StandIn = (path: Path) => unknown;

/** A value without its wrong parts, and the problems of later checks on it, which see translated paths. */
export interface Salvaged<Value> {
  readonly value: Value;
  readonly problems: Problems;
}

/** The value without its wrong parts, or null when nothing useful is left. All problems are reported. */
export function salvage<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  options: { problems: Problems; standIn: StandIn },
): Salvaged<z.output<Schema>> | null {
  let shape = checkShape(schema, value);
  let { problems } = options;
  for (const finding of shape.findings ?? []) problems.error(finding);
  let current = value;
  for (let round = 0; round < ROUNDS_MAX && shape.findings !== null; round++) {
    const cuts = newCuts();
    for (const { path } of shape.findings) addCut(cuts, partToCut(path, current, options.standIn));
    if (cuts.isCut) return null;
    current = withoutCuts({ value: current, cuts, path: [], standIn: options.standIn });
    problems = problems.translated(translation(cuts));
    shape = checkShape(schema, current);
  }
  return shape.findings === null ? { value: shape.data, problems } : null;
}

/** What is cut out of one list or mapping. */
interface Cuts {
  isCut: boolean;
  readonly inner: Map<string | number, Cuts>;
}

const newCuts = (): Cuts => ({ isCut: false, inner: new Map() });

/** A key that is missing cannot be cut out, so what lacks it is, unless there is a stand-in. */
function partToCut(path: Path, value: unknown, standIn: StandIn): Path {
  const isMissing = valueAt(value, path) === undefined && standIn(path) === undefined;
  return isMissing ? path.slice(0, -1) : path;
}

function addCut(cuts: Cuts, path: Path): void {
  let current = cuts;
  for (const part of path) {
    const next = current.inner.get(part) ?? newCuts();
    current.inner.set(part, next);
    current = next;
  }
  current.isCut = true;
}

interface Cutting {
  readonly value: unknown;
  readonly cuts: Cuts;
  readonly path: Path;
  readonly standIn: StandIn;
}

function withoutCuts({ value, cuts, path, standIn }: Cutting): unknown {
  const kept = (part: string | number, item: unknown): unknown => {
    const inner = cuts.inner.get(part);
    if (inner === undefined) return item;
    const at = [...path, part];
    return inner.isCut ? standIn(at) : withoutCuts({ value: item, cuts: inner, path: at, standIn });
  };
  if (Array.isArray(value)) {
    return value.map((item, index) => kept(index, item)).filter((item) => item !== undefined);
  }
  const entries = Object.entries(value as object).map(([key, item]) => [key, kept(key, item)] as const);
  const missing = [...cuts.inner.keys()].filter((key) => !Object.hasOwn(value as object, key));
  const added = missing.map((key) => [String(key), kept(key, undefined)] as const);
  return Object.fromEntries([...entries, ...added].filter(([, item]) => item !== undefined));
}

/** Leads back to the paths before the cut; what concerns a part that was cut out has been reported already. */
function translation(cuts: Cuts): Translate {
  return (finding) => {
    const path: (string | number)[] = [];
    let current: Cuts | undefined = cuts;
    for (const part of finding.path) {
      const before: string | number = typeof part === 'number' ? indexBefore(part, current) : part;
      path.push(before);
      current = current?.inner.get(before);
      if (current?.isCut === true) return null;
    }
    return { ...finding, path } satisfies Finding;
  };
}

/** The index that a list item had before items in front of it were cut out. */
function indexBefore(index: number, cuts: Cuts | undefined): number {
  let before = index;
  const removed = [...(cuts?.inner ?? [])].filter(([, inner]) => inner.isCut).map(([part]) => Number(part));
  for (const each of removed.sort((a, b) => a - b)) if (each <= before) before += 1;
  return before;
}
