import { type ReportSection, textColumn } from '../report/report.ts';

/** Who does what in these runs: Pufferbench's seven parts, and what ours are. */
export function partsSection(): ReportSection {
  return {
    id: 'parts',
    title: 'The seven parts',
    prose: [
      'Planning (metadata, distribution, transfers, who does which I/O), data generation, execution, which alone is timed, and statistics: the four ' +
        'steps and seven replaceable parts of Pufferbench (Cheriere, Dorier, Antoniu, PDSW-DISCS 2018).',
    ],
    charts: [],
    tables: [
      {
        id: 'parts',
        title: 'Parts and what stands for them',
        columns: [textColumn('part'), textColumn('answers'), textColumn('implementations')],
        rows: [
          ['MetadataGenerator', 'how many files, of what size?', 'files of one size'],
          ['DataDistributionGenerator', 'which nodes hold which file?', 'uniform; random; real placements with pins'],
          [
            'DataTransferScheduler',
            'which transfers turn before into after?',
            'min-max with chains; HDFS-like; controls: any holder at random, leaving nodes only',
          ],
          ['IODispatcher', 'who does which I/O, and when?', 'ordered pull with windows; HDFS-like streams and rounds'],
          [
            'Storage',
            'how are bytes read and written?',
            'simulated: memory, device, drive that switches between streams; processes: memory, drive past or through the page cache',
          ],
          [
            'Network',
            'how do bytes get across?',
            'simulated: full duplex behind a switch without contention; processes: sockets with a cap each way',
          ],
          ['DataDistributionValidator', 'load per node, copies per file?', 'before and after every run'],
        ],
      },
    ],
  };
}
