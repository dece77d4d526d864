import { readFile } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { asNodeId, codeOf, NodeDisk, replaceWhole, systemClock, SystemRandom, utf8, WebdfsError } from '@webdfs/base';
import {
  formatSurvey,
  type NodeSurvey,
  openRescuedMap,
  parseSurvey,
  rescueMap,
  type RescueReport,
  surveyFolder,
} from '@webdfs/webdfs';
import { type Arguments, type Command, EXIT, UsageError } from '../../command.ts';
import { stderrLog } from '../../log-level.ts';
import { MAP_OPTIONS, openNamedMap } from '../../map-options.ts';
import { DEFAULT_DATA } from '../../remote.ts';
import { printJson, printLine, type Terminal } from '../../terminal.ts';

const NODE_FOLDER = /^node-\d+$/;

async function surveyOf(folder: string, terminal: Terminal): Promise<NodeSurvey> {
  const seams = { disk: new NodeDisk(), clock: systemClock, random: new SystemRandom(), log: stderrLog(terminal, {}) };
  return await surveyFolder({ folder, ...seams });
}

/** The nodes' folders within one of "webdfs up"; none if it is none. */
async function foldersIn(folder: string): Promise<string[]> {
  const names = await new NodeDisk().list(folder).catch(() => []);
  return names.filter((name) => NODE_FOLDER.test(name)).map((name) => join(folder, name));
}

async function surveysIn(args: Arguments, terminal: Terminal): Promise<NodeSurvey[]> {
  const surveys: NodeSurvey[] = [];
  const inEtcd = args.text('join') !== undefined;
  const own = inEtcd ? [] : await foldersIn(resolve(args.text('data') ?? DEFAULT_DATA));
  for (const path of [...own, ...args.positionals.map((word) => resolve(word))]) {
    const isFolder = await new NodeDisk().list(path).then(
      () => true,
      () => false,
    );
    surveys.push(isFolder ? await surveyOf(path, terminal) : parseSurvey(await readFile(path, 'utf8')));
  }
  if (surveys.length === 0)
    throw new UsageError('name the folders of its nodes, or what "cluster survey" wrote of them');
  return surveys;
}

function lostNodes(args: Arguments): number[] {
  return args.texts('without').map((word) => {
    const node = Number(word);
    if (!/^[1-9]\d{0,4}$/.test(word) || node > 65_535)
      throw new UsageError(`--without takes a node's number, got ${word}`);
    return node;
  });
}

function tell(report: RescueReport, where: string, terminal: Terminal): void {
  if (terminal.json) return printJson(terminal, report);
  const { era, nodes, copyOf, copyRevision, overtaken, missing, mayLose } = report;
  printLine(terminal, `${where} holds the cluster now: ${nodes} nodes, era ${era}`);
  const source = copyOf === undefined ? "the store's own state" : `node ${copyOf}'s copy`;
  printLine(terminal, `it was made from ${source}, of revision ${copyRevision}`);
  if (overtaken > 0) printLine(terminal, `${overtaken} groups are held by those whose logs end last`);
  if (missing.length > 0) printLine(terminal, `missing: nodes ${missing.join(', ')}; they catch up if they come back`);
  if (mayLose) printLine(terminal, 'writes that only they had are lost: "webdfs verify" reads what is there');
}

export const clusterRescue: Command = {
  name: 'cluster rescue',
  usage: 'cluster rescue [FOLDER|SURVEY …]',
  summary: "Makes the map of a cluster anew from its nodes' data folders, when the store that held it is lost.",
  details: [
    'All nodes must be stopped. With --data FOLDER, that of "webdfs up", its nodes are found there; with --join, name the',
    'nodes\' folders, or for those on other machines what "webdfs cluster survey" wrote there. Every node that the map has',
    'must be named, or said to be lost with --without; nothing acknowledged is lost as long as fewer are missing than a',
    'write needs to be acknowledged (2 of 3 copies: one may be missing).',
  ].join('\n'),
  options: {
    ...MAP_OPTIONS,
    without: { type: 'string', multiple: true, value: 'N', about: 'node N is lost for good; may be repeated' },
    'accept-data-loss': { type: 'boolean', about: 'go on though so many nodes are missing that writes may be lost' },
  },
  async run(args, terminal) {
    const without = lostNodes(args).map((node) => asNodeId(node));
    const surveys = await surveysIn(args, terminal);
    const { store, name, where } = await openNamedMap(args, terminal, openRescuedMap);
    await using _ = store;
    const acceptDataLoss = args.flag('accept-data-loss');
    tell(await rescueMap(store, surveys, { name, without, acceptDataLoss }), where, terminal);
    return EXIT.OK;
  },
};

export const clusterSurvey: Command = {
  name: 'cluster survey',
  usage: 'cluster survey --data FOLDER FILE',
  summary: 'Writes what the folder of a stopped node tells of its cluster, for "webdfs cluster rescue" elsewhere.',
  options: { data: { type: 'string', value: 'FOLDER', about: "the node's folder" } },
  async run(args, terminal) {
    const [file, ...more] = args.positionals;
    const data = args.text('data');
    if (file === undefined || more.length > 0 || data === undefined) {
      throw new UsageError('usage: webdfs cluster survey --data FOLDER FILE');
    }
    const path = resolve(file);
    const survey = await surveyOf(resolve(data), terminal);
    try {
      await replaceWhole(new NodeDisk(), dirname(path), basename(path), utf8(formatSurvey(survey)));
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
      throw new WebdfsError('BAD_CONFIG', `${path} cannot be written`, { cause: error });
    }
    if (terminal.json) printJson(terminal, { node: survey.node, groups: survey.groups.length, file: path });
    else printLine(terminal, `what node ${survey.node} tells of ${survey.groups.length} groups is in ${path}`);
    return EXIT.OK;
  },
};
