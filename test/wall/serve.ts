import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Cell } from './cells.ts'
import type { Scenario } from './scenarios.ts'
import { setupOf } from './setup.ts'
import { faults } from './simulator/faults.ts'
import { type Simulator, startSimulator } from './simulator/server.ts'

type Options = {
  cells: readonly Cell[]
  port: number
  host: string
  time: number
  /** A folder for a router's configuration. */
  write?: string | undefined
}

/** Starts the simulator and says how to point a gateway at it. */
export async function serve(
  { cells, port, host, time, write }: Options,
  print: (line: string) => void,
): Promise<Simulator> {
  const simulator = await startSimulator({ port, host, time })
  const { url } = simulator
  print(`The simulator listens at ${url}, with its times × ${time}.`)
  print(`  OpenAI:     ${url}/v1/chat/completions, ${url}/v1/responses`)
  print(`  Anthropic:  ${url}/v1/messages`)
  print(`  Requests:   GET ${url}/wall/requests?model=&target=&caller= (DELETE forgets them)`)
  print(`  Outages:    POST ${url}/wall/down {"model": "ok", "seconds": 60}`)
  print('\nIts models; a suffix after ~ makes another model that does the same:')
  for (const { name, about } of faults) print(`  ${name.padEnd(46)} ${about}`)
  print(
    '\nA gateway that is tested has two names for each scenario: one leads to the first model alone, the other goes on to',
  )
  print('the second:')
  for (const line of namesOf(cells)) print(`  ${line}`)
  if (write !== undefined) {
    await writeSetup(write, cells, simulator, time)
    print(`\nThe configuration of a router is in ${write}: npm start -- --config ${join(write, 'config.yaml')}`)
  }
  return simulator
}

function namesOf(cells: readonly Cell[]): string[] {
  const scenarios = new Set<Scenario>(cells.map(({ scenario }) => scenario))
  return [...scenarios].map(({ name, first, second = 'ok' }) => `${name.padEnd(20)} ${first}, then ${second}`)
}

/** Each cell has a provider with an address of its own. */
async function writeSetup(folder: string, cells: readonly Cell[], simulator: Simulator, time: number): Promise<void> {
  const urls = await Promise.all(cells.map(() => simulator.listen()))
  const { files, settings } = setupOf(cells, { url: simulator.url, urls, time })
  const all = { 'config.yaml': `${JSON.stringify(settings, null, 2)}\n`, ...files }
  for (const [path, text] of Object.entries(all)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
}
