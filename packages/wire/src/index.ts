export { type Limits, LIMITS } from './limits.ts';
export { MemoryNetwork, type MemoryNetworkOptions, type MemoryNodeSeams } from './memory-network.ts';
export { openTcpTransport, type TcpTransportOptions } from './tcp-transport.ts';
export { type Certificates } from './tls-certificates.ts';
export {
  type CallContext,
  type CallOptions,
  type Handlers,
  type Incoming,
  type Link,
  type Message,
  NO_ATTACHMENT,
  type Outgoing,
  type Piece,
  type Transport,
} from './transport.ts';
