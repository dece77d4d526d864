/**
 * What WebDFS published in July 2009, from the scripts of its graphs (utils/graphs/RUSHr and RUSHp) and its blog. Disks 1 to 15 in
 * order; counts are copies of 10 000 objects, three each.
 */

/** RUSH_R, 30 July 2009. The names were kept, so these come out to the digit. */
export const PUBLISHED_RUSH_R = {
  distribution: [877, 867, 810, 851, 842, 1778, 1668, 1722, 1748, 1647, 3446, 3473, 3417, 3430, 3424],
  /** Moved away from each disk when five disks of weight 8 join. */
  add: [466, 445, 429, 442, 458, 933, 887, 908, 926, 850, 1852, 1837, 1802, 1853, 1847],
  /** … when the first sub-cluster gets weight 0. */
  drain: [877, 867, 810, 851, 842, 285, 260, 249, 286, 254, 0, 0, 0, 0, 0],
  /** … when the second sub-cluster goes from weight 2 to 4. */
  reweight: [303, 299, 335, 298, 284, 0, 0, 0, 0, 0, 758, 763, 764, 782, 782],
  /** … when disk 1 is taken out. */
  'remove-1': [877, 662, 483, 290, 136, 64, 57, 55, 74, 64, 0, 0, 0, 0, 0],
} as const;

/** Copies that share an object with a failed disk, by disk. */
export const PUBLISHED_PARTNERS_RUSH_R = {
  1: [0, 41, 35, 32, 36, 93, 104, 97, 99, 103, 222, 239, 208, 225, 220],
  7: [104, 92, 74, 91, 82, 174, 0, 185, 172, 193, 435, 422, 434, 442, 436],
  15: [220, 250, 217, 212, 186, 473, 436, 424, 442, 432, 881, 899, 859, 917, 0],
} as const;

/** RUSH_P, 17 July 2009: new random names for every run. Moves are counted by rank. */
export const PUBLISHED_RUSH_P = {
  distribution: [855, 873, 829, 842, 866, 1737, 1657, 1683, 1694, 1735, 3397, 3504, 3442, 3405, 3481],
  add: [432, 454, 454, 436, 463, 879, 888, 903, 922, 937, 1859, 1821, 1809, 1854, 1869],
  /** The first sub-cluster taken out of the list. */
  drop: [842, 864, 851, 882, 865, 1733, 1713, 1662, 1674, 1653, 2995, 2888, 2935, 2920, 3016],
  /** The last disk taken out. */
  'remove-15': [137, 136, 132, 126, 142, 267, 267, 253, 310, 303, 2791, 2802, 2727, 2771, 3403],
  /** Another weight for the last sub-cluster; which is not said. */
  'reweight-last': [172, 171, 176, 150, 210, 363, 355, 345, 303, 338, 2838, 2864, 2660, 2828, 2860],
} as const;

export const PUBLISHED_PARTNERS_RUSH_P = {
  1: [0, 0, 22, 27, 0, 48, 66, 53, 61, 70, 232, 281, 299, 278, 253],
  7: [64, 65, 62, 69, 63, 129, 0, 127, 87, 91, 510, 525, 482, 516, 524],
  15: [251, 251, 248, 262, 259, 535, 568, 581, 505, 524, 521, 933, 924, 546, 0],
} as const;

/** Totals of the blog's text where they are not those of its graphs, or not the optimum it calls them. */
export const PUBLISHED_TEXT = {
  /** RUSH_P, first sub-cluster dropped; its graph adds up to 27 493. */
  rushPDrop: 27_943,
  /** Called optimal: what the first five disks held under RUSH_R. */
  drainOptimum: 4247,
  /** Called optimal for 2 → 4. */
  reweightOptimum: 4761,
  /** Called optimal: what disk 1 held. */
  removeOptimum: 877,
} as const;

/** Microseconds a look-up of three copies took at so many sub-clusters of five; 1.83 GHz Core Duo, PHP 5. */
export const PUBLISHED_LOOKUP_US = {
  subclusters: [1, 10, 25, 50, 100],
  'rush-r even': [54.1, 215.7, 405.1, 727.3, 1569.1],
  'rush-r growing': [54.5, 224.2, 202.4, 80.3, 98.4],
  'rush-p even': [22.1, 79.9, 224.1, 593.5, 1896.5],
  'rush-p growing': [20.8, 69.1, 75.2, 42.4, 65.2],
} as const;

/** The test of 15 servers in five sub-clusters of three: two copies of 129 278 objects. */
export const PUBLISHED_SERVERS = {
  objects: 129_278,
  mean: 17_237,
  fullest: 1.039,
  emptiest: 0.968,
  deviation: 333,
  chiSquare: 90,
} as const;
