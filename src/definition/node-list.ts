/** The node-list dialect (SPEC S1.3) → the ordinary shape, with templates rewritten and places that lead back. */
import { formatDuration } from '../base/duration.ts';
import type { HandlerCatalog } from './handler-spec.ts';
import { type Edit, offsetBefore, type Rewriter, rewriter } from './node-list-templates.ts';
import { type Finding, formatPath, type Path, type Translate } from './problem.ts';
import { isTemplated } from './template-sites.ts';
import type { NodeListInput, TaskInput, WorkflowInput } from './workflow-schema.ts';

/** A node list in the ordinary shape; `translate` leads from its problems to the file's own paths. */
export interface OrdinaryForm {
  readonly workflow: WorkflowInput;
  readonly findings: readonly Finding[];
  readonly translate: Translate;
}

/** True for a value that is written in the node-list dialect. */
export function isNodeList(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'nodes' in value && !('tasks' in value);
}

/** The same workflow in the ordinary shape. */
export function fromNodeList(input: NodeListInput, handlers: HandlerCatalog): OrdinaryForm {
  const rewrite = rewriter(input.nodes.flatMap((node) => node.id ?? []));
  const canonicalName = new Map(
    [...handlers.values()].flatMap(({ name, aliases = [] }) => aliases.map((alias) => [alias, name])),
  );
  const indexOf = new Map<string, number>();
  const edits = new Map<string, readonly Edit[]>();
  const findings: Finding[] = [];
  const tasks = new Map<string, TaskInput>();
  for (const [index, node] of input.nodes.entries()) {
    const finding = findIdProblem(node.id, index, indexOf);
    if (finding !== null) findings.push(finding);
    if (node.id === undefined || tasks.has(node.id)) continue;
    indexOf.set(node.id, index);
    const at: Path = ['tasks', node.id, 'with'];
    tasks.set(node.id, {
      ...(node.handler === undefined ? {} : { uses: canonicalName.get(node.handler) ?? node.handler }),
      ...(node.dependencies === undefined ? {} : { needs: node.dependencies }),
      with: rewriteTexts(node.config ?? {}, { at, rewrite, edits }) as Record<string, unknown>,
      ...(node.timeout_seconds === undefined ? {} : { timeout: toDuration(node.timeout_seconds) }),
    });
  }
  const { nodes: _, ...rest } = input;
  const workflow: WorkflowInput = { ...rest, tasks: Object.fromEntries(tasks) };
  return { workflow, findings, translate: translation(indexOf, edits) };
}

function findIdProblem(
  id: string | undefined,
  index: number,
  indexOf: ReadonlyMap<string, number>,
): Finding | null {
  if (id === undefined) return { code: 'missing_key', message: '`id` is missing', path: ['nodes', index] };
  const first = indexOf.get(id);
  if (first === undefined) return null;
  const message = `node \`${id}\` is defined twice; the first is nodes[${first}]`;
  const hint = 'give one of them another id';
  return { code: 'duplicate_id', message, hint, path: ['nodes', index, 'id'] };
}

function toDuration(seconds: number): string {
  return formatDuration(Math.max(1, Math.round(seconds * 1000)));
}

interface Rewriting {
  readonly at: Path;
  readonly rewrite: Rewriter;
  readonly edits: Map<string, readonly Edit[]>;
}

function rewriteTexts(value: unknown, { at, rewrite, edits }: Rewriting): unknown {
  const inner = (part: string | number, item: unknown): unknown =>
    rewriteTexts(item, { at: [...at, part], rewrite, edits });
  if (isTemplated(value)) {
    const rewritten = rewrite(value);
    if (rewritten.edits.length > 0) edits.set(formatPath(at), rewritten.edits);
    return rewritten.text;
  }
  if (Array.isArray(value)) return value.map((item, index) => inner(index, item));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, inner(key, item)]));
}

const SOURCE_KEYS: Readonly<Record<string, string>> = {
  uses: 'handler',
  with: 'config',
  needs: 'dependencies',
  timeout: 'timeout_seconds',
};

function translation(
  indexOf: ReadonlyMap<string, number>,
  edits: ReadonlyMap<string, readonly Edit[]>,
): Translate {
  return (finding) => {
    const [top, id, key, ...rest] = finding.path;
    if (top !== 'tasks') return finding;
    const index = indexOf.get(String(id));
    if (index === undefined) return { ...finding, path: ['nodes'] };
    if (key === undefined) return { ...finding, path: ['nodes', index, 'id'], atKey: false };
    const path = ['nodes', index, SOURCE_KEYS[key] ?? key, ...rest];
    const { offset } = finding;
    if (offset === undefined) return { ...finding, path };
    return { ...finding, path, offset: offsetBefore(offset, edits.get(formatPath(finding.path)) ?? []) };
  };
}
