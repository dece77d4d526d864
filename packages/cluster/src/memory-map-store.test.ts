import { ManualClock } from '@webdfs/base';
import { testMapStore } from './conformance.ts';
import { MemoryMapStore } from './memory-map-store.ts';

testMapStore('memory', async () => {
  const clock = new ManualClock();
  const store = new MemoryMapStore(clock, { history: { changes: 8 } });
  return {
    store,
    other: store.connect(),
    pass: async (ms) => clock.advance(ms),
    keptChanges: 8,
    [Symbol.asyncDispose]: () => store[Symbol.asyncDispose](),
  };
});
