export * from './map-store.ts';
export * from './map.ts';
export * from './view.ts';
