import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';

/** An HTTP server on a free port of this machine, for a test that needs somebody at the other end. */
export interface LocalServer extends AsyncDisposable {
  /** Such as `127.0.0.1:40123`. */
  readonly host: string;
}

/** Answers by `listener` until it is disposed of, which also ends its connections. */
export async function serveLocally(listener: RequestListener): Promise<LocalServer> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return {
    host: `127.0.0.1:${address.port}`,
    async [Symbol.asyncDispose]() {
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
  };
}
