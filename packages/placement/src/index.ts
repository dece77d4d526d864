export * from './topology.ts';
