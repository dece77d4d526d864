export {
  type Bound,
  commissionBound,
  type CommissionAbilities,
  decommissionBound,
  type DecommissionAbilities,
  rebuildBound,
  type Resource,
  type Setup,
} from './bounds.ts';
export type { IOEffect, IOEvent } from './io-step.ts';
export type { Parcel, Transfer } from './parcel.ts';
export { planRescale, type RescalePlan } from './plan.ts';
export { PullDispatcher, type PullLimits } from './pull-dispatcher.ts';
export { type RescaleFigures, type RescaleRatios, rescaleRatios } from './ratios.ts';
export { type Rates, type RatesOf, secondsFor, type Throttle, throttledRates } from './rates.ts';
export { type Pace, paceOf, type Usage } from './usage.ts';
