export {
  BACK_OFF,
  type BackOffOptions,
  backOffStep,
  type MovingPace,
  type MovingSample,
  UNHURRIED,
} from './back-off.ts';
export { balanceIntake, type IntakeOptions } from './balance-intake.ts';
export { changeEvenly } from './change-evenly.ts';
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
export { type GroupContents, parcelsBetween } from './parcels-between.ts';
export { pieceBytes } from './piece-size.ts';
export { planRescale, type RescalePlan } from './plan.ts';
export { PullDispatcher, type PullLimits } from './pull-dispatcher.ts';
export { type Rates, type RatesOf, secondsFor, type Throttle, throttledRates } from './rates.ts';
export { type RescaleFigures, type RescaleRatios, rescaleRatios } from './ratios.ts';
export { departsFrom, remainingParcels, type Standing } from './replan.ts';
export { type NodeProgress, smoothedRate, timeLeft } from './time-left.ts';
export { type NodeShare, unequalBound } from './unequal-bound.ts';
export { type Pace, paceOf, type Usage, usageOf } from './usage.ts';
