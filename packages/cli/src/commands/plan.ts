import { CHANGE_HELP } from '@webdfs/webdfs';
import { isGrave, planOf, presentOf } from '../cluster-plan.ts';
import { type Command, EXIT } from '../command.ts';
import { planText } from '../plan-text.ts';
import { REMOTE_OPTIONS } from '../remote.ts';
import { printJson, printLine } from '../terminal.ts';

export const plan: Command = {
  name: 'plan',
  usage: 'plan [CHANGE…]',
  summary: 'Shows what a change would move, and how things stand after it. Moves nothing.',
  details: `Of a running cluster, or of a topology file (docs/guide/planning.md); without a change, how things stand.

${CHANGE_HELP}

Ends with 1 if there would be too few nodes or too little room, else with 0.`,
  options: {
    topology: { type: 'string', value: 'FILE', about: 'the cluster as a file describes it (default: a running one)' },
    to: { type: 'string', value: 'FILE', about: 'what it is to become, instead of changes' },
    'keep-factors': { type: 'boolean', about: 'leave calibration as it is: less moves, loads are less true to weight' },
    balance: { type: 'boolean', about: 'with pins that bring the fullest node within 2 % of its share' },
    ...REMOTE_OPTIONS,
  },
  async run(args, terminal) {
    const wanted = {
      words: args.positionals,
      to: args.text('to'),
      keepFactors: args.flag('keep-factors'),
      balance: args.flag('balance'),
    };
    const found = await planOf(wanted, await presentOf(args, terminal));
    if (terminal.json) printJson(terminal, found);
    else printLine(terminal, planText(found));
    return isGrave(found) ? EXIT.FAILED : EXIT.OK;
  },
};
