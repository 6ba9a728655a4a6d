import { hasErrors } from '../manifest/problem.ts'
import { UnreadableBill } from '../money/bill.ts'
import { buildSnapshot } from '../snapshot/snapshot.ts'
import { openStore } from '../store/open.ts'
import { isEngineError, StoreError, storeError } from '../store/store-error.ts'
import { type Form, type Out, problemLine, readWords, type Words, wrongUsage } from './args.ts'
import type { LedgerAction } from './ledger-action.ts'
import * as check from './ledger-check.ts'
import * as compare from './ledger-compare.ts'
import * as recount from './ledger-recount.ts'
import { CannotDo, WrongUsage } from './store-command.ts'

/** What `inference-router ledger --help` says. */
export const help = `The rows of settled calls, held against prices and bills.

  inference-router ledger check
  inference-router ledger recount [--from DAY] [--to DAY] [--org NAME] [--key ID]
  inference-router ledger compare --bill FILE.csv [--provider SLUG] [--tolerance 0.01]
                                  [--columns date=…,model=…,cost=…] [--from DAY] [--to DAY]

check holds the sums of spend and usage against the rows of the ledger: exit code 1 when one is wrong.

recount computes the cost of each call anew from what it used. A call whose prices are still those of the catalog
must cost the same to the nano-dollar: exit code 1 when one does not. Calls priced by other prices are summed up by
model with what they would cost today, calls whose cost the provider told with what it told.

compare sums up by model and day of UTC and shows what the bill of a provider and the ledger say: exit code 1 when
they differ by more than the tolerance, which is USD or, with a %, a part of the bill.

  --from, --to      days such as 2026-11-30, the last one included, or times such as 2026-11-30T12:00:00Z;
                    unless said this month until now, or the days of the bill
  --org NAME        the calls of one organization (name or id)
  --key ID          the calls of one key
  --bill FILE       CSV with a line that names its columns, money in USD
  --columns LIST    which column is what, where the names are not the usual ones
  --provider SLUG   whose bill it is; without it the calls of all providers count
  --tolerance SUM   per model and day: USD (0.01 unless said) or a share such as 1%
  --config FILE     the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)
  --json            print JSON
`

const actions: { readonly [name: string]: LedgerAction } = { check, recount, compare }

/** Runs `inference-router ledger …`. Returns the exit code: 0 fine, 1 differences or cannot be done, 2 wrong usage. */
export async function run([name, ...args]: string[], out: Out): Promise<number> {
  if (name === '--help' || name === '-h') {
    out.stdout(help)
    return 0
  }
  const action = Object.hasOwn(actions, name ?? '') ? actions[name as string] : undefined
  if (!action) {
    const known = Object.keys(actions).join(', ')
    return wrongUsage(`${name ? `there is no '${name}'` : 'say what to do'}: ${known}`, help, out)
  }
  const form: Form = { positionals: 0, options: [...action.options, 'config'], flags: ['json'] }
  const words = readWords(args, form, help, out)
  if (typeof words === 'number') return words
  try {
    return await act(action.read(words), words, out)
  } catch (thrown) {
    if (thrown instanceof WrongUsage) return wrongUsage(thrown.message, help, out)
    if (!(thrown instanceof CannotDo || thrown instanceof StoreError || thrown instanceof UnreadableBill)) throw thrown
    out.stderr(`${thrown.message}\n`)
    return 1
  }
}

async function act(find: ReturnType<LedgerAction['read']>, words: Words, out: Out): Promise<number> {
  const { snapshot, problems } = await buildSnapshot(words.options.config, process.env)
  if (!snapshot || hasErrors(problems)) {
    for (const problem of problems) out.stderr(problemLine(problem))
    return 1
  }
  const store = openStore(snapshot.config.store.url)
  try {
    const { json, text, fine } = await find({ store, snapshot })
    out.stdout(words.flags.has('json') ? `${JSON.stringify(json, null, 2)}\n` : text)
    return fine ? 0 : 1
  } catch (thrown) {
    throw isEngineError(thrown) ? storeError(thrown, store.path) : thrown
  } finally {
    store.close()
  }
}
