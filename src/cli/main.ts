#!/usr/bin/env node
/** The `relay` program: connects the process to `runCli`. */
import type { Interrupt, Io, Output } from './io.ts';
import { LineReader } from './line-reader.ts';
import { runCli } from './run-cli.ts';

for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    // `relay … | head` closes the pipe; that is the reader's choice, not a failure.
    if (error.code === 'EPIPE') process.exit();
    throw error;
  });
}

const lines = new LineReader(process.stdin);

process.exitCode = await runCli(process.argv.slice(2), {
  out: toOutput(process.stdout),
  err: toOutput(process.stderr),
  readStdin,
  input: { isTerminal: process.stdin.isTTY === true, readLine: (signal) => lines.next(signal) },
  onInterrupt,
  quit: (code) => process.exit(code),
  env: process.env,
  cwd: process.cwd(),
});

function toOutput(stream: NodeJS.WriteStream): Output {
  return {
    write: (text) => void stream.write(text),
    isTerminal: stream.isTTY === true,
    size: () => ({ columns: stream.columns ?? 80, rows: stream.rows ?? 24 }),
  };
}

function onInterrupt(listener: Parameters<Io['onInterrupt']>[0]): () => void {
  const signals: readonly Interrupt[] = ['SIGINT', 'SIGTERM'];
  const heard = signals.map((signal) => [signal, () => listener(signal)] as const);
  for (const [signal, hear] of heard) process.on(signal, hear);
  return () => {
    for (const [signal, hear] of heard) process.off(signal, hear);
  };
}

async function readStdin(bytesMax: number): Promise<Uint8Array | null> {
  const chunks: Buffer[] = [];
  let total = 0;
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) {
    total += chunk.length;
    if (total > bytesMax) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
