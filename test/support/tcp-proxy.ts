/** A connection that breaks when a test wants it to: forwards bytes to a server until told to cut at a word. */
import { connect, createServer, type Socket } from 'node:net';

/** Where to cut: before the server gets the word, or after it has answered and before the client hears of it. */
type Cut = 'before' | 'after';

/** A proxy in front of one server. */
export interface TcpProxy {
  readonly port: number;
  /** Cuts the next connection on which the client sends this word; resolves when it has happened. */
  cutAt(word: string, when: Cut): Promise<void>;
  /** Swallows everything from now on, in both directions, and closes nothing. */
  freeze(): void;
  /** Lets new connections through again; those that were frozen stay so. */
  thaw(): void;
  /** The same, but the connection stays open and silent: as if one side hung. */
  holdAt(word: string, when: Cut): Promise<void>;
  close(): Promise<void>;
}

/** Starts a proxy to a local port. */
export async function startProxy(target: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let isFrozen = false;
  const swallowed = new Set<Socket>();
  let plan: { word: string; when: Cut; isCut: boolean; done: () => void } | null = null;
  const server = createServer((client) => {
    const upstream = connect(target, '127.0.0.1');
    let isMuted = false;
    let isHeld = false;
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        upstream.end();
      });
    }
    if (isFrozen) swallowed.add(client);
    client.on('data', (data) => {
      if (swallowed.has(client)) return;
      const { word, when, isCut, done } = plan ?? {};
      if (isHeld) return;
      if (word !== undefined && data.includes(word)) {
        plan = null;
        isHeld = isCut === false;
        if (when === 'before') {
          if (isCut === true) client.destroy();
          if (isCut === true) upstream.destroy();
          done?.();
          return;
        }
        isMuted = true;
        // The answer to the whole batch comes in one piece once the server is done with it.
        upstream.once('data', () => {
          if (isCut === true) client.destroy();
          if (isCut === true) upstream.destroy();
          done?.();
        });
      }
      upstream.write(data);
    });
    upstream.on('data', (data) => {
      if (!isMuted && !swallowed.has(client)) client.write(data);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    cutAt: (word, when) =>
      new Promise((resolve) => {
        plan = { word, when, isCut: true, done: resolve };
      }),
    holdAt: (word, when) =>
      new Promise((resolve) => {
        plan = { word, when, isCut: false, done: resolve };
      }),
    freeze: () => {
      isFrozen = true;
      for (const socket of sockets) swallowed.add(socket);
    },
    thaw: () => {
      isFrozen = false;
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
