/** What a rescale took, what its plan said, and what nobody could beat. */
export interface RescaleFigures {
  readonly movedBytes: number;
  /** The least that any scheme must move. */
  readonly leastBytes: number;
  /** T_plan, seconds. */
  readonly planSeconds: number;
  /** T_bound, seconds. */
  readonly boundSeconds: number;
  readonly seconds: number;
}

/** How close a rescale came to the bound, and who lost what; 1 is perfect. */
export interface RescaleRatios {
  /** The placement: bytes moved by the least. */
  readonly move: number;
  /** Balance of placement and of sources: T_plan / T_bound. */
  readonly place: number;
  /** Pipeline, order, throttle: T / T_plan. */
  readonly exec: number;
  /** T / T_bound: the one that is promised. */
  readonly total: number;
}

/** A ratio of two nothings is 1: there was nothing to do, and it was done. */
function ratio(value: number, least: number): number {
  return value === least ? 1 : value / least;
}

export function rescaleRatios(figures: RescaleFigures): RescaleRatios {
  const { movedBytes, leastBytes, planSeconds, boundSeconds, seconds } = figures;
  return {
    move: ratio(movedBytes, leastBytes),
    place: ratio(planSeconds, boundSeconds),
    exec: ratio(seconds, planSeconds),
    total: ratio(seconds, boundSeconds),
  };
}
