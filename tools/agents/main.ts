import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { clients } from './clients.ts'
import { type Fault, faults } from './provider.ts'
import { measureCell, resultLine } from './reliability.ts'
import { sdks } from './sdks.ts'
import { isComplete } from './session.ts'
import { targets } from './targets.ts'
import { lineOf, tableOf, toolLoops } from './tool-loops.ts'

const usage = `Usage: npm run agents -- <folder with the installed clients> [client...]
  --targets <names>   targets, separated by commas (default: all)
  --seconds <number>  how long a session may take (default 120)
  --failing <rates>   instead of tool loops: calls to a provider that fails this often, directly and through the router: 0.05,0.3,0.5
  --faults <names>    how it fails (default: ${faults.join(',')})
  --calls <number>    calls or sessions of each kind and rate of failures (default 10)
  --parallel <number> how many of them at once (default 1: both sides then draw the same failures in the same order)
  --seed <number>     other failures (default 1)
Clients: ${Object.keys(clients).join(', ')}
With --failing: claude-code, codex, ${Object.keys(sdks).join(', ')}
Targets: ${Object.keys(targets).join(', ')}`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    targets: { type: 'string', default: Object.keys(targets).join(',') },
    seconds: { type: 'string', default: '120' },
    failing: { type: 'string' },
    faults: { type: 'string', default: faults.join(',') },
    calls: { type: 'string', default: '10' },
    parallel: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
  },
})

/** Runs command line agents against the router, and prints what they could do. */
async function main(): Promise<void> {
  const [folder, ...asked] = positionals
  if (!folder) throw new Error(usage)
  const settings = { folder: resolve(folder), maxMs: Number(values.seconds) * 1_000 }
  const usual = values.failing ? ['claude-code', 'codex', ...Object.keys(sdks)] : Object.keys(clients)
  const names = (asked.length > 0 ? asked : usual).filter((name) => isInstalled(settings.folder, name))
  const isGood = values.failing ? await reliability(names, values.failing, settings) : await loops(names, settings)
  process.exitCode = isGood ? 0 : 1
}

/** Tool loops of clients on targets; true if all were completed. */
async function loops(names: readonly string[], settings: { folder: string; maxMs: number }): Promise<boolean> {
  const all = await toolLoops(names, values.targets.split(','), settings, (loop) => console.log(lineOf(loop)))
  console.log(`\n${tableOf(all)}`)
  return all.every(({ session }) => isComplete(session))
}

/** Calls to failing providers; true if none succeeded less often through the router than directly. */
async function reliability(
  names: readonly string[],
  rates: string,
  settings: { folder: string; maxMs: number },
): Promise<boolean> {
  const [calls, parallel, seed] = [values.calls, values.parallel, values.seed].map(Number) as [number, number, number]
  let isGood = true
  for (const client of names) {
    for (const fault of values.faults.split(',') as Fault[]) {
      for (const rate of rates.split(',').map(Number)) {
        const result = await measureCell({ client, fault, rate }, { ...settings, calls, parallel, seed })
        console.log(resultLine(result))
        isGood &&= result.routed.succeeded >= result.direct.succeeded
      }
    }
  }
  return isGood
}

function isInstalled(folder: string, name: string): boolean {
  const client = clients[name]
  if (!client && !sdks[name]) throw new Error(`There is no client "${name}".\n${usage}`)
  const isThere = !client || existsSync(join(folder, 'node_modules', client.package))
  if (!isThere) console.log(`${name}: left out, ${client?.package} is not installed in ${folder}`)
  return isThere
}

await main()
