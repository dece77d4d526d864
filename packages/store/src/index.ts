export * from './entry.ts';
export * from './store.ts';
