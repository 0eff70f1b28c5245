/** What can be wrong with a workflow file, and where. Problems are collected, never thrown one by one. */
import { PROBLEMS_MAX } from '../base/limits.ts';

/** Every kind of problem, with what it means. `docs/reference/problems.md` comes from here. */
export const PROBLEM_CODES = Object.freeze({
  empty_file: 'The file has no content.',
  syntax: 'The text is not valid YAML or JSON.',
  duplicate_key: 'A key stands twice in one mapping.',
  too_many_aliases: 'Aliases (`*name`) expand to too much data.',
  nested_too_deep: 'Lists and mappings are nested too deeply.',
  not_json: 'A value has no JSON form (infinity, a custom tag, an integer too large to be exact).',
  wrong_type: 'A value has the wrong type.',
  wrong_value: 'A value has the right type but is not allowed.',
  missing_key: 'A required key is absent.',
  unknown_key: 'A key is not part of the format.',
  bad_duration: 'A duration is not written as `500ms`, `30s`, `5m`, `2h` or `1d`.',
  bad_id: 'A name has characters or a length that names may not have.',
  reserved_id: 'A task has a name that templates use for something else.',
  duplicate_id: 'Two tasks have the same id.',
  no_tasks: 'The workflow has no tasks.',
  too_many_tasks: 'The workflow has more tasks than the limit.',
  config_too_large: 'The `with` of a task is larger than the limit.',
  unknown_dependency: '`needs` names a task that does not exist.',
  self_dependency: 'A task needs itself.',
  cycle: 'Tasks need each other in a circle, so none of them could ever start.',
  missing_handler: 'A task does not say which handler it uses.',
  undeclared_handler: '`uses` names a handler that is neither built in nor declared in `handlers`.',
  invalid_config: 'The handler does not accept this `with`.',
  template_syntax: 'A template or expression does not parse.',
  unknown_reference: 'A template uses a name that does not exist.',
  misplaced_reference: 'A template uses a name that exists, but not in this place.',
  undeclared_input: 'A template uses an input that `inputs` does not declare.',
  undeclared_secret: 'A template uses a secret that `secrets` does not list.',
  undeclared_env: 'A template uses an environment variable that `env` does not list.',
  bad_json_schema: 'A JSON Schema is not valid, or its own default does not fit it.',
  not_applicable: 'A key has no effect here.',
  disconnected: 'Warning: the workflow falls apart into pieces that share no dependency.',
  unavailable:
    'Warning: a task names something that is not there on this machine, such as a model without a key.',
  unquoted_shell: 'Warning: data is put into script text without the quoting filter `| sh`.',
});

/** A name in the table above. */
export type ProblemCode = keyof typeof PROBLEM_CODES;

/** Keys and indexes from the top of the document. */
export type Path = readonly (string | number)[];

/** A place in a file, 1-based. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** One problem, as it is shown and as `--json` prints it. */
export interface Problem {
  readonly code: ProblemCode;
  readonly message: string;
  readonly hint?: string;
  /** `tasks.draft.needs[0]` */
  readonly path: string;
  readonly line: number | null;
  readonly column: number | null;
}

/** A finding of a check, before it has a place in the file. */
export interface Finding {
  readonly code: ProblemCode;
  readonly message: string;
  readonly hint?: string | undefined;
  readonly path: Path;
  /** Points at the key itself instead of its value. */
  readonly atKey?: boolean;
  /** Offset into the text of the value, for problems inside a template. */
  readonly offset?: number;
  /** The place itself, when the finder knows it better than the path does. */
  readonly position?: Position | null;
}

/** Finds the place of a path in the source; null when the definition did not come from text. */
export type Locate = (path: Path, at: { key: boolean; offset: number | null }) => Position | null;

/** Leads a finding about a derived form back to what the user wrote; null when it is only the echo of a reported problem. */
export type Translate = (finding: Finding) => Finding | null;

interface Lists {
  readonly errors: Problem[];
  readonly warnings: Problem[];
  /** What has been listed, so that one mistake in `defaults` is not told once per task. */
  readonly told: Set<string>;
  dropped: number;
}

/** Collects errors and warnings and gives them their places. */
export class Problems {
  readonly #locate: Locate;
  readonly #translate: Translate;
  readonly #lists: Lists;

  constructor(
    locate: Locate,
    translate: Translate = (finding) => finding,
    lists: Lists = { errors: [], warnings: [], told: new Set(), dropped: 0 },
  ) {
    this.#locate = locate;
    this.#translate = translate;
    this.#lists = lists;
  }

  /** The same collection for checks that see a derived form. */
  translated(translate: Translate): Problems {
    const outer = this.#translate;
    const both: Translate = (finding) => {
      const inner = translate(finding);
      return inner === null ? null : outer(inner);
    };
    return new Problems(this.#locate, both, this.#lists);
  }

  error(finding: Finding): void {
    this.#add(this.#lists.errors, finding);
  }

  warn(finding: Finding): void {
    this.#add(this.#lists.warnings, finding);
  }

  get hasErrors(): boolean {
    return this.#lists.errors.length > 0;
  }

  /** How many problems were found beyond the listed ones. */
  get dropped(): number {
    return this.#lists.dropped;
  }

  get errors(): readonly Problem[] {
    return this.#lists.errors.toSorted(byPlace);
  }

  get warnings(): readonly Problem[] {
    return this.#lists.warnings.toSorted(byPlace);
  }

  #add(list: Problem[], found: Finding): void {
    const finding = this.#translate(found);
    if (finding === null) return;
    const path = formatPath(finding.path);
    const { line, column } = finding.position ?? {};
    const id = [finding.code, path, finding.offset, line, column, finding.message].join(' ');
    if (this.#lists.told.has(id)) return;
    if (list.length >= PROBLEMS_MAX) {
      this.#lists.dropped += 1;
      return;
    }
    this.#lists.told.add(id);
    const at = { key: finding.atKey ?? false, offset: finding.offset ?? null };
    const position = finding.position ?? this.#locate(finding.path, at);
    const { code, message, hint } = finding;
    list.push({
      code,
      message,
      ...(hint === undefined ? {} : { hint }),
      path,
      line: position?.line ?? null,
      column: position?.column ?? null,
    });
  }
}

/** A path as people write it. */
export function formatPath(path: Path): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') text += `[${part}]`;
    else if (/^[\w-]+$/.test(part)) text += text === '' ? part : `.${part}`;
    else text += `[${JSON.stringify(part)}]`;
  }
  return text;
}

function byPlace(a: Problem, b: Problem): number {
  const lines = (a.line ?? 0) - (b.line ?? 0);
  return lines !== 0 ? lines : (a.column ?? 0) - (b.column ?? 0);
}
