/**
 * The load test that WebDFS published in 2009: 15 servers in 5 sub-clusters of 3 on Amazon EC2, two copies, 500 clients
 * that wait up to a second between requests, 8 reads to 2 writes, files of 50 KB to 10 MB, 250 GB uploaded.
 */
export const PUBLISHED = {
  subclusters: 5,
  nodesPerSubcluster: 3,
  copies: 2,
  clients: 500,
  thinkMs: 1_000,
  writeShare: 0.2,
  smallestBytes: 50_000,
  largestBytes: 10_000_000,
  seconds: 5_300,
  uploads: 129_278,
  downloads: 808_603,
  uploadedBytes: 250_000_850_000,
  transferredBytes: 1_813_697_450_000,
  bytesOnDisk: 499_200_710_256,
  copiesLost: 0,
  copiesCorrupt: 2_071,
  objectsCorrupt: 40,
  fewestOnNode: 16_679,
  mostOnNode: 17_914,
  meanOnNode: 17_237,
  /** What a good store may differ by: fullest and emptiest node against the mean. */
  spread: 0.05,
} as const;
