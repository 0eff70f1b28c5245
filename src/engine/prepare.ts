/** Settlements as workers send them → ready to be written: outputs checked, payloads stored, content digested. */
import { createHash } from 'node:crypto';
import { RelayError } from '../base/errors.ts';
import { classify } from '../domain/failure.ts';
import type { BlobStore } from '../stores/blob-store.ts';
import { checkOutput } from '../worker/check-output.ts';
import type { OutputSpec, Settlement } from '../worker/work-source.ts';
import { storeBytes, storeJson } from './payload.ts';
import type { PreparedSettlement } from './settle.ts';

/** Prepares one settlement. `outputOf` tells what the task wants its output to be. */
export async function prepareSettlement(
  settlement: Settlement,
  { blobs, outputOf }: { blobs: BlobStore; outputOf: (lease_id: string) => Promise<OutputSpec | null> },
): Promise<PreparedSettlement> {
  const { lease_id } = settlement;
  const usage = settlement.usage ?? null;
  const digest = digestOf(settlement);
  switch (settlement.kind) {
    case 'complete': {
      const spec = await outputOf(lease_id);
      const problem = spec === null ? null : await checkOutput(spec, settlement.output);
      if (problem !== null) return refusedOutput(lease_id, { digest, usage, problem });
      try {
        const output = await storeJson(settlement.output, blobs);
        const files = await Promise.all(
          (settlement.artifacts ?? []).map(async ({ name, bytes, content_type }) => ({
            name,
            payload: await storeBytes(bytes, content_type, blobs),
          })),
        );
        return { kind: 'complete', lease_id, digest, usage, output, files };
      } catch (error) {
        if (!(error instanceof RelayError)) throw error;
        const problem = { problem: 'too_long', message: error.message } as const;
        return refusedOutput(lease_id, { digest, usage, problem });
      }
    }
    case 'fail':
      return { kind: 'fail', lease_id, digest, usage, failure: settlement.failure };
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
  };
}

function digestOf(settlement: Settlement): string {
  const { lease_id: _, usage: __, ...content } = settlement;
  const text = JSON.stringify(content, (_key, value) =>
    value instanceof Uint8Array ? createHash('sha256').update(value).digest('hex') : value,
  );
  return createHash('sha1').update(text).digest('base64');
}
