export * from './groups.ts';
export * from './object-store.ts';
