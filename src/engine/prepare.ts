/** Settlements as workers send them → ready to be written: outputs checked, payloads stored, content digested. */
import { createHash, hash } from 'node:crypto';
import { isStoreError, RelayError } from '../base/errors.ts';
import { classify } from '../domain/failure.ts';
import type { BlobStore } from '../stores/blob-store.ts';
import { checkOutput } from '../worker/check-output.ts';
import type { NewArtifact, OutputSpec, SentArtifact, Settlement } from '../worker/work-source.ts';
import type { NamedTask, WrittenTasks } from './new-tasks.ts';
import { inlineText, type StoredPayload, storeBytes, storedBlob, storeJson } from './payload.ts';
import type { PreparedSettlement } from './settle.ts';

/** A completion with nothing but a small output needs nobody else. Null: it is not one, or its output is to be looked at. */
export function prepareAtOnce(
  settlement: Settlement,
  output: OutputSpec | null | undefined,
): PreparedSettlement | null {
  if (output !== null || !isBare(settlement)) return null;
  const text = textOf(settlement.output);
  const payload = text === null ? null : inlineText(text);
  if (text === null || payload === null) return null;
  return {
    kind: 'complete',
    lease_id: settlement.lease_id,
    digest: digestOfOutput(text),
    usage: settlement.usage ?? null,
    output: payload,
    files: [],
    companions: null,
  };
}

type Completion = Extract<Settlement, { kind: 'complete' }>;

function isBare(settlement: Settlement): settlement is Completion & { readonly artifacts?: undefined } {
  return (
    settlement.kind === 'complete' &&
    settlement.artifacts === undefined &&
    settlement.enqueue === undefined &&
    settlement.context === undefined
  );
}

/** Prepares one settlement. `outputOf` tells what the task wants its output to be. */
export async function prepareSettlement(
  settlement: Settlement,
  context: {
    readonly blobs: BlobStore;
    readonly outputOf: (lease_id: string) => Promise<OutputSpec | null>;
    readonly readTasks: (lease_id: string, tasks: WrittenTasks) => Promise<readonly NamedTask[]>;
  },
): Promise<PreparedSettlement> {
  const { lease_id } = settlement;
  const usage = settlement.usage ?? null;
  const digest = digestOf(settlement);
  if (digest === null) {
    const problem = { problem: 'not_json', message: 'what the worker sent is not JSON' } as const;
    return refusedOutput(lease_id, { digest: 'not_json', usage, problem });
  }
  switch (settlement.kind) {
    case 'complete':
      return prepareCompletion(settlement, { ...context, digest });
    case 'fail': {
      const files = await storeFiles(settlement.artifacts, context.blobs).catch(withoutTooLarge);
      return { kind: 'fail', lease_id, digest, usage, failure: settlement.failure, files };
    }
    case 'release':
      return { kind: 'release', lease_id, digest, usage, delay_ms: settlement.delay_ms ?? 0 };
    case 'pause':
      return {
        kind: 'pause',
        lease_id,
        digest,
        usage,
        status: settlement.status,
        question: settlement.question,
      };
  }
}

async function prepareCompletion(
  settlement: Completion,
  { blobs, outputOf, readTasks, digest }: Parameters<typeof prepareSettlement>[1] & { digest: string },
): Promise<PreparedSettlement> {
  const { lease_id, usage = null, enqueue, context } = settlement;
  const spec = await outputOf(lease_id);
  const problem = spec === null ? null : await checkOutput(spec, settlement.output);
  if (problem !== null) return refusedOutput(lease_id, { digest, usage, problem });
  try {
    const output = await storeJson(settlement.output, blobs);
    const files = await storeFiles(settlement.artifacts, blobs);
    const tasks = enqueue === undefined ? [] : await readTasks(lease_id, enqueue);
    const companions = tasks.length === 0 && context === undefined ? null : { tasks, notes: context ?? [] };
    return { kind: 'complete', lease_id, digest, usage, output, files, companions };
  } catch (error) {
    if (!(error instanceof RelayError) || isStoreError(error)) throw error;
    const kind = error.code === 'PAYLOAD_TOO_LARGE' ? 'too_long' : 'schema';
    return refusedOutput(lease_id, { digest, usage, problem: { problem: kind, message: error.message } });
  }
}

function storeFiles(
  artifacts: readonly (NewArtifact | SentArtifact)[] = [],
  blobs: BlobStore,
): Promise<readonly { readonly name: string; readonly payload: StoredPayload }[]> {
  return Promise.all(
    artifacts.map(async (artifact) => ({
      name: artifact.name,
      payload: await storeArtifact(artifact, blobs),
    })),
  );
}

function storeArtifact(artifact: NewArtifact | SentArtifact, blobs: BlobStore): Promise<StoredPayload> {
  const { content_type } = artifact;
  if (!('sha256' in artifact)) return storeBytes(artifact.bytes, content_type, blobs);
  return storedBlob({ ref: artifact.sha256, bytes: artifact.bytes }, content_type, blobs);
}

/** A failure is recorded even when what it wanted to leave cannot be. */
function withoutTooLarge(error: unknown): readonly never[] {
  if (!(error instanceof RelayError) || isStoreError(error)) throw error;
  return [];
}

/** An output that is not what the task asked for fails the attempt, whoever ran it (TRANSITIONS 20, 21). */
function refusedOutput(
  lease_id: string,
  facts: Pick<PreparedSettlement, 'digest' | 'usage'> & {
    problem: NonNullable<Awaited<ReturnType<typeof checkOutput>>>;
  },
): PreparedSettlement {
  const { digest, usage, problem } = facts;
  const { class: failureClass, code } = classify({ kind: 'output', problem: problem.problem });
  return {
    kind: 'fail',
    lease_id,
    digest,
    usage,
    failure: { class: failureClass, code, message: problem.message },
    files: [],
  };
}

/**
 * Tells a repeat from another content. Files of a result count with their hash; those of a failure do not, as a worker that repeats it
 * after its lease has ended cannot send them again. Null when the content is not JSON (a circle, a bigint).
 */
function digestOf(settlement: Settlement): string | null {
  if (isBare(settlement)) {
    const text = textOf(settlement.output);
    return text === null ? null : digestOfOutput(text);
  }
  const {
    lease_id: _,
    usage: __,
    ...content
  } = settlement.kind === 'fail' ? { ...settlement, artifacts: undefined } : settlement;
  const isWithFiles = settlement.kind === 'complete' && settlement.artifacts !== undefined;
  try {
    const text = isWithFiles ? JSON.stringify(content, hashBytes) : JSON.stringify(content);
    return createHash('sha1').update(text).digest('base64');
  } catch {
    // One worker's mistake must not fail the others of its batch; it is told as an output error.
    return null;
  }
}

function digestOfOutput(text: string): string {
  return hash('sha1', `complete ${text}`, 'base64');
}

/** A value as JSON; null when it cannot be written so. */
function textOf(value: unknown): string | null {
  try {
    return JSON.stringify(value ?? null) ?? null;
  } catch {
    return null;
  }
}

function hashBytes(_key: string, value: unknown): unknown {
  return value instanceof Uint8Array ? createHash('sha256').update(value).digest('hex') : value;
}
