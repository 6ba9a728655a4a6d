import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { clients } from './clients.ts'
import { isComplete } from './session.ts'
import { targets } from './targets.ts'
import { type Loop, lineOf, toolLoops } from './tool-loops.ts'

const usage = `Usage: npm run agents -- <folder with the installed clients> [client...]
  --targets <names>   targets, separated by commas (default: all)
  --seconds <number>  how long a session may take (default 120)
Clients: ${Object.keys(clients).join(', ')}
Targets: ${Object.keys(targets).join(', ')}`

/** Runs command line agents against the router, and prints which of them completed their tool loop. */
async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      targets: { type: 'string', default: Object.keys(targets).join(',') },
      seconds: { type: 'string', default: '120' },
    },
  })
  const [folder, ...asked] = positionals
  if (!folder) throw new Error(usage)
  const settings = { folder: resolve(folder), maxMs: Number(values.seconds) * 1_000 }
  const names = (asked.length > 0 ? asked : Object.keys(clients)).filter((name) => isInstalled(settings.folder, name))
  const loops: Loop[] = []
  await toolLoops(names, values.targets.split(','), settings, (loop) => {
    loops.push(loop)
    console.log(lineOf(loop))
  })
  console.log(`\n${tableOf(loops)}`)
  process.exitCode = loops.every(({ session }) => isComplete(session)) ? 0 : 1
}

function isInstalled(folder: string, name: string): boolean {
  const client = clients[name]
  if (!client) throw new Error(`There is no client "${name}".\n${usage}`)
  const isThere = existsSync(join(folder, 'node_modules', client.package))
  if (!isThere) console.log(`${name}: left out, ${client.package} is not installed in ${folder}`)
  return isThere
}

/** Clients by targets, as Markdown. */
function tableOf(loops: readonly Loop[]): string {
  const columns = [...new Set(loops.map(({ target }) => target))]
  const rows = [...new Set(loops.map(({ client }) => client))].map((client) => {
    const own = loops.filter((loop) => loop.client === client)
    return `| ${[client, ...columns.map((target) => cellOf(own.find((loop) => loop.target === target)))].join(' | ')} |`
  })
  return [`| | ${columns.join(' | ')} |`, `|${'---|'.repeat(columns.length + 1)}`, ...rows].join('\n')
}

function cellOf(loop: Loop | undefined): string {
  if (!loop) return ''
  const refused = loop.seen.find(({ rule }) => rule)?.rule
  if (isComplete(loop.session)) return refused ? `passed after ${refused}` : 'passed'
  return `**${refused ?? 'no end'}**`
}

await main()
