export * from './transport.ts';
