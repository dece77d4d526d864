import { resolve } from 'node:path';
import { NodeDisk, systemClock, SystemRandom } from '@webdfs/base';
import { checkStore } from '@webdfs/webdfs';
import { type Command, EXIT, UsageError } from '../command.ts';
import { stderrLog } from '../log-level.ts';
import { formatBytes, printJson, printLine } from '../terminal.ts';

export const fsck: Command = {
  name: 'fsck',
  usage: 'fsck --data FOLDER',
  summary: 'Reads and verifies the store of a stopped node; --rebuild-index makes its index anew from the volumes.',
  details:
    "FOLDER is a node's own, such as ./webdfs-data/node-1. Ends with 0 if nothing is damaged, with 1 if something is.",
  options: {
    data: { type: 'string', value: 'FOLDER', about: "a node's folder" },
    'rebuild-index': { type: 'boolean', about: 'first make the index anew from the volumes' },
  },
  async run(args, terminal) {
    const folder = args.text('data');
    if (folder === undefined || args.positionals.length > 0) throw new UsageError('usage: webdfs fsck --data FOLDER');
    const findings = await checkStore({
      folder: resolve(folder),
      rebuildIndex: args.flag('rebuild-index'),
      disk: new NodeDisk(),
      clock: systemClock,
      random: new SystemRandom(),
      log: stderrLog(terminal, {}),
      signal: terminal.signal,
    });
    const sound = findings.damage.length === 0 && findings.damaged === 0;
    if (terminal.json) {
      printJson(terminal, { ...findings, sound });
      return sound ? EXIT.OK : EXIT.FAILED;
    }
    if (findings.rebuilt) printLine(terminal, 'the index was made anew from the volumes');
    printLine(
      terminal,
      `node ${findings.node}: ${findings.entries} entries verified, ${findings.objects} objects, ${findings.blocks} blocks, ` +
        `${formatBytes(findings.liveBytes)} live of ${formatBytes(findings.volumeBytes)}`,
    );
    for (const { volume, place, what } of findings.damage)
      printLine(terminal, `damaged: volume ${volume} at ${place}: ${what}`);
    printLine(
      terminal,
      sound
        ? 'nothing is damaged'
        : 'damaged copies are not served; the node repairs them from the others once it runs',
    );
    return sound ? EXIT.OK : EXIT.FAILED;
  },
};
