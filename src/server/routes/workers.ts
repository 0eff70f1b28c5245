/** Workers and leases over HTTP (SPEC S11.1): what travels is turned into what the engine takes, and nothing is decided here. */
import { ROUTES, type WireSettlement } from '#client';
import { parseDuration } from '../../base/duration.ts';
import { ERROR_CODES, type ErrorCode } from '../../base/error-codes.ts';
import { RelayError } from '../../base/errors.ts';
import { PAYLOAD_BYTES_MAX } from '../../engine/payload.ts';
import { type BlobStore, getBytes } from '../../stores/blob-store.ts';
import type {
  Heartbeat,
  HeartbeatAnswer,
  SentArtifact,
  Settlement,
  SettlementResult,
} from '../../worker/work-source.ts';
import type { ServeRoutes, ServerContext } from '../context.ts';

export const serveWorkers: ServeRoutes = (serve, context) => {
  const routes = ROUTES.workers;
  const { remote } = context.engine;
  serve(routes.list, ({ api }) => api.workers.list());
  serve(routes.register, ({ body }) => remote.register(body));
  serve(routes.claim, async ({ params, body, gone }) => {
    const { limit, wait_s = 0, start, claim_id } = body;
    const wire = body.settlements ?? [];
    const { ready, refused } = await readSettlements(wire, context);
    const waitMs = wire.length > 0 ? 0 : wait_s * 1_000;
    const signal = waitMs > 0 ? gone() : AbortSignal.abort();
    const startedAt = context.clock.monotonic();
    const answer = await remote.claim(params.id, {
      limit,
      settlements: ready,
      claim_id,
      start,
      waitMs,
      signal,
    });
    const seconds = (context.clock.monotonic() - startedAt) / 1_000;
    if (ready.length > 0) context.metrics.observeWork('settle', seconds);
    else if (waitMs === 0) context.metrics.observeWork('claim', seconds);
    const { leases, drain } = answer;
    const wireLeases = leases.map(({ checkpoint, output, ...lease }) => ({
      ...lease,
      checkpoint: checkpoint ?? null,
      output: output as Record<string, unknown> | null,
    }));
    return { results: inOrder(wire, [...answer.results, ...refused]), leases: wireLeases, drain };
  });
  serve(routes.heartbeat, ({ params, body }) =>
    remote.heartbeat(
      params.id,
      body.leases.map((beat) => masked(beat, context)),
    ),
  );
  serve(routes.logs, async ({ body }) => {
    await remote.log(body.chunks.map((chunk) => ({ ...chunk, text: context.redact(chunk.text) })));
    return { ok: true as const };
  });
  serve(routes.drain, ({ api, params }) => api.workers.drain(params.id));
  serve(routes.deregister, async ({ params }) => ({ released: await remote.deregister(params.id) }));
};

export const serveLeases: ServeRoutes = (serve, context) => {
  const routes = ROUTES.leases;
  const { remote } = context.engine;
  const { blobs } = context.engine.context;
  serve(routes.start, ({ params }) => beatOne(params, context));
  serve(routes.checkpoint, ({ params, body }) => beatOne({ ...body, ...params }, context));
  serve(routes.logs, async ({ params, body }) => {
    const chunks = body.chunks.map(({ stream, text }) => ({ ...params, stream, text: context.redact(text) }));
    if ((await remote.log(chunks)) === 0 && chunks.length > 0) throw staleLease();
    return { ok: true as const };
  });
  serve(routes.complete, ({ params, body }) => settleOne({ kind: 'complete', ...params, ...body }, context));
  serve(routes.fail, ({ params, body }) => settleOne({ kind: 'fail', ...params, ...body }, context));
  serve(routes.release, ({ params, body }) => settleOne({ kind: 'release', ...params, ...body }, context));
  serve(routes.pause, ({ params, body }) => settleOne({ kind: 'pause', ...params, ...body }, context));
  serve(routes.putBlob, async ({ params: { lease_id, key }, content: { bytes, pieces } }) => {
    if (!(await remote.isLive(lease_id))) throw staleLease();
    await blobs.write({ ref: key, bytes }, pieces);
    return { key, bytes };
  });
  serve(routes.getBlob, async ({ params: { lease_id, key } }) => {
    if (!(await remote.isLive(lease_id))) throw staleLease();
    const size = await sizeOf(key, blobs);
    return { content_type: 'application/octet-stream', size, etag: `"${key}"`, read: () => blobs.read(key) };
  });
};

async function beatOne(beat: Heartbeat, context: ServerContext): Promise<HeartbeatAnswer> {
  const [answer] = await context.engine.remote.beat([masked(beat, context)]);
  if (answer === undefined || answer.order !== 'continue') throw staleLease(answer?.order);
  return answer;
}

async function settleOne(
  wire: WireSettlement,
  context: ServerContext,
): Promise<Extract<SettlementResult, { ok: true }>> {
  const settlement = await readSettlement(wire, context);
  const result = await context.engine.remote.settle(settlement);
  if (result === undefined) throw staleLease();
  if (result.ok) return result;
  const code = Object.hasOwn(ERROR_CODES, result.code) ? (result.code as ErrorCode) : 'INTERNAL';
  throw new RelayError(code, result.message);
}

interface ReadSettlements {
  readonly ready: readonly Settlement[];
  readonly refused: readonly SettlementResult[];
}

/** One that cannot be read gets its own answer; the others go on (SPEC S4.6). */
async function readSettlements(
  wire: readonly WireSettlement[],
  context: ServerContext,
): Promise<ReadSettlements> {
  const ready: Settlement[] = [];
  const refused: SettlementResult[] = [];
  for (const settlement of wire) {
    try {
      ready.push(await readSettlement(settlement, context));
    } catch (error) {
      if (!(error instanceof RelayError) || error.code === 'INTERNAL') throw error;
      const { code, message } = error;
      refused.push({ lease_id: settlement.lease_id, ok: false, code, message });
    }
  }
  return { ready, refused };
}

/** One answer per settlement, in the order in which they were sent. */
function inOrder(
  wire: readonly WireSettlement[],
  results: readonly SettlementResult[],
): readonly SettlementResult[] {
  const left = [...results];
  return wire.flatMap(({ lease_id }) => {
    const at = left.findIndex((result) => result.lease_id === lease_id);
    return at < 0 ? [] : left.splice(at, 1);
  });
}

/** A settlement as the engine takes it: content that was sent ahead is fetched, secrets are masked in what is said. */
async function readSettlement(wire: WireSettlement, context: ServerContext): Promise<Settlement> {
  const { redact } = context;
  switch (wire.kind) {
    case 'complete':
      return readCompletion(wire, context);
    case 'fail': {
      const { retry_after_ms, ...rest } = wire.failure;
      const wait = retry_after_ms === undefined ? {} : { retryAfterMs: retry_after_ms };
      const { artifacts, ...sent } = wire;
      const failure = { ...rest, ...wait, message: redact(rest.message) };
      return { ...sent, failure, ...(await readFiles(artifacts, context)) };
    }
    case 'pause':
      if (wire.question.timeout !== undefined && parseDuration(wire.question.timeout) === null)
        throw new RelayError('USAGE', `\`timeout\` is longer than ten years: ${wire.question.timeout}`);
      return { ...wire, question: { ...wire.question, message: redact(wire.question.message) } };
    case 'release':
      return wire;
  }
}

async function readCompletion(
  wire: Extract<WireSettlement, { kind: 'complete' }>,
  server: ServerContext,
): Promise<Settlement> {
  const { blobs } = server.engine.context;
  const { output_sha256, artifacts, output, lease_id, usage, enqueue, context } = wire;
  const stored = output_sha256 === undefined ? null : await readOutput(output_sha256, blobs);
  return {
    kind: 'complete',
    lease_id,
    output: stored === null ? (output ?? null) : stored.value,
    ...(usage === undefined ? {} : { usage }),
    ...(await readFiles(artifacts, server)),
    ...(enqueue === undefined ? {} : { enqueue }),
    ...(context === undefined ? {} : { context }),
  };
}

/** Files that were sent ahead. */
async function readFiles(
  artifacts: Extract<WireSettlement, { kind: 'complete' }>['artifacts'],
  { engine }: ServerContext,
): Promise<{ artifacts?: readonly SentArtifact[] }> {
  if (artifacts === undefined) return {};
  const { blobs } = engine.context;
  const sized = artifacts.map(async (artifact) => ({
    ...artifact,
    bytes: await sizeOf(artifact.sha256, blobs),
  }));
  return { artifacts: await Promise.all(sized) };
}

async function sizeOf(ref: string, blobs: BlobStore): Promise<number> {
  const size = await blobs.size(ref);
  if (size !== null) return size;
  throw new RelayError('NOT_FOUND', `the content ${ref} has not been sent`, {
    hint: 'send it to the blobs of the lease first',
  });
}

/** An output is read whole: templates and checks need it. */
async function readOutput(ref: string, blobs: BlobStore): Promise<{ readonly value: unknown }> {
  const size = await sizeOf(ref, blobs);
  if (size > PAYLOAD_BYTES_MAX)
    throw new RelayError(
      'PAYLOAD_TOO_LARGE',
      `an output of ${size} bytes is over the limit of ${PAYLOAD_BYTES_MAX}`,
    );
  const bytes = Buffer.from(await getBytes(blobs, ref));
  try {
    return { value: JSON.parse(bytes.toString('utf8')) as unknown };
  } catch (cause) {
    throw new RelayError('USAGE', 'the content of `output_sha256` is not JSON', { cause });
  }
}

function masked(beat: Heartbeat, { redact }: ServerContext): Heartbeat {
  return beat.message === undefined ? beat : { ...beat, message: redact(beat.message) };
}

function staleLease(order = 'lost'): RelayError {
  const message = 'the lease has ended: the task was cancelled, or given to another worker';
  return new RelayError('STALE_LEASE', message, { details: { order } });
}
