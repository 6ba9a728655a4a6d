import * as compare from '../../../tools/bills/ledger-compare.ts'
import { hasErrors } from '../../manifest/check/problem.ts'
import { type Args, actionNamed, jsonText, type Out, parseArguments, problemLine, runCommand } from '../command.ts'
import { readSnapshot } from '../read-snapshot.ts'
import { configuredStoreUrl, withStore } from '../store-command.ts'
import type { Finding, LedgerAction } from './ledger-action.ts'
import * as check from './ledger-check.ts'
import * as recount from './ledger-recount.ts'
import * as show from './ledger-show.ts'

/** The text of `inference-router ledger --help`. */
export const help = `Shows settled calls, and compares their rows with sums, prices and bills.

  inference-router ledger show ID
  inference-router ledger check
  inference-router ledger recount [--from DAY] [--to DAY] [--org NAME] [--key ID]
  inference-router ledger compare --bill FILE.csv [--provider SLUG] [--tolerance 0.01]
                                  [--columns date=…,model=…,cost=…] [--from DAY] [--to DAY]

show prints everything that is recorded about one call, with what providers wrote about failed attempts. ID is that of the
log, of x-request-id or of the answer.

check reads the whole database file, and compares the sums of spend and usage with the rows of the ledger: exit code 1
when the file is damaged or a sum is wrong.

recount computes the cost of each call again from its usage. A call whose prices are still those of the catalog
must cost the same to the nano-dollar: exit code 1 when one does not. Calls billed at other prices are summed up by
model with what they would cost today, calls whose cost the provider reported with that cost.

compare shows the sums of a provider's bill and of the ledger by model and day of UTC: exit code 1 when
they differ by more than the tolerance, which is USD or, with a %, a part of the bill.

  --from, --to      days such as 2026-11-30, the last one included, or times such as 2026-11-30T12:00:00Z;
                    by default this month until now, or the days of the bill
  --org NAME        the calls of one organization (name or id)
  --key ID          the calls of one key
  --bill FILE       CSV with a line that names its columns, money in USD: the exports of OpenAI, Anthropic, Google Cloud,
                    AWS and OpenRouter as they are, or any other
  --columns LIST    the names of the columns, where they are not the usual ones
  --provider SLUG   whose bill it is; without it the calls of all providers count
  --tolerance SUM   per model and day: USD (0.01 by default) or a share such as 1%
  --config FILE     the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)
  --json            print JSON
`

const actions: { readonly [name: string]: LedgerAction } = { show, check, recount, compare }

/** Runs `inference-router ledger …`. Returns the exit code: 0 fine, 1 differences or failed, 2 wrong usage. */
export function run(args: string[], out: Out): Promise<number> {
  return runCommand(args, { help, out }, async () => {
    const [name, ...rest] = args
    const action = actionNamed(actions, name)
    const options = { ...action.options, config: { type: 'string' }, json: { type: 'boolean' } } as const
    const parsed = parseArguments(rest, { ...action, options })
    const found = await findingOf(action, parsed, out)
    if (!found) return 1
    out.stdout(parsed.flag('json') ? jsonText(found.json) : found.text)
    return found.ok ? 0 : 1
  })
}

/** Runs an action; undefined where the files that it needs have errors, which are printed. */
async function findingOf(action: LedgerAction, args: Args, out: Out): Promise<Finding | undefined> {
  if (action.withoutFiles) {
    const find = action.prepare(args)
    return await withStore(await configuredStoreUrl(args.text('config')), (store) => find({ store }))
  }
  const find = action.prepare(args)
  const { snapshot, problems } = await readSnapshot(args.text('config'))
  if (!snapshot || hasErrors(problems)) {
    for (const problem of problems) out.stderr(problemLine(problem))
    return undefined
  }
  return await withStore(snapshot.config.store.url, (store) => find({ store, snapshot }))
}
