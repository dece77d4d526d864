export { checkHistory, type HistoryReport, type Offence } from './check-history.ts';
export { checkKey, type Verdict } from './linearizability.ts';
export type { Action, Condition, ListingOperation, Operation, Result } from './operation.ts';
export { type Asked, type AskedListing, HistoryRecorder } from './recorder.ts';
export { drawOperations, operationText } from './transcript.ts';
export { type Oddity, type RecordedWorkload, recordWorkload, type Subject, type WorkloadOptions } from './workload.ts';
