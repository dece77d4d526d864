export * from './record.ts';
export * from './requests.ts';
