import { readFileSync } from 'node:fs'
import { startSimulator } from '../../simulator/server.ts'
import { openHttpClient } from '../../upstream/http/http-client.ts'
import { jsonText, type Out, parseArguments, runCommand, table, UsageError } from '../command.ts'
import { readSnapshot } from '../read-snapshot.ts'
import { checkDatabase } from './database.ts'
import { checkEnvironment, checkFiles, simulatorVariable } from './environment.ts'
import { areas, type Finding } from './finding.ts'
import { checkClock, checkDescriptors, checkNode } from './machine.ts'
import { checkPorts } from './ports.ts'
import { callProviders } from './providers.ts'

/** The text of `inference-router doctor --help`. */
export const help = `Checks what a router needs, and says what to fix: Node, files, environment, database, disk, ports, open files, clock.

  inference-router doctor [--call [SLUG…]] [--config FILE] [--json]

  --call          call the providers as well: each one whose secret is set, or those that are named, once, with the model
                  that costs least and at most 16 tokens of output. It is charged by the providers, not in the ledger
  --config FILE   the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)
  --json          print JSON: {findings: [{area, state, message, fix?}], problems, warnings}

Run it where the router runs: as the same user, with the same environment. A router may run meanwhile. Without --call
nothing leaves the machine. The exit code is 1 when there is a problem.
`

const flag = { type: 'boolean' } as const
const options = { call: flag, config: { type: 'string' }, json: flag } as const

/** Runs `inference-router doctor`. Returns the exit code. */
export function run(args: string[], out: Out): Promise<number> {
  return runCommand(args, { help, out }, async () => {
    const { positionals, text, flag } = parseArguments(args, { options, positionals: Number.POSITIVE_INFINITY })
    if (positionals.length > 0 && !flag('call')) throw new UsageError('providers are named for --call')
    const findings = inOrder(await findAll(text('config'), flag('call') ? positionals : undefined))
    const count = (state: Finding['state']) => findings.filter((one) => one.state === state).length
    const [problems, warnings] = [count('problem'), count('warning')]
    out.stdout(flag('json') ? jsonText({ findings, problems, warnings }) : asText(findings, { problems, warnings }))
    return problems > 0 ? 1 : 0
  })
}

/** Collects all findings; `called` are the providers to call, none of them named for all. */
async function findAll(configPath: string | undefined, called: readonly string[] | undefined): Promise<Finding[]> {
  // The simulator runs in the router itself, at an address of its own.
  await using stack = new AsyncDisposableStack()
  const simulator = called && stack.adopt(await startSimulator(), (running) => running.close())
  const built = await readSnapshot(configPath, simulator && { [simulatorVariable]: simulator.url })
  const { snapshot } = built
  const findings = [...checkNode(requiredNode()), ...checkFiles(built)]
  // Without the configuration nothing else is known.
  if (!snapshot) return findings
  const { config, providers } = snapshot
  const unknown = called?.find((slug) => !providers.has(slug))
  if (unknown !== undefined) throw new UsageError(`there is no provider '${unknown}'`)
  const database = checkDatabase(config.store.url)
  const client = stack.adopt(openHttpClient(), (open) => open.close())
  const { findings: ofCalls, skews } = called
    ? await callProviders(snapshot, { named: called, client })
    : { findings: [], skews: [] }
  return [
    ...findings,
    ...checkEnvironment(snapshot, process.env),
    ...database.findings,
    ...(await checkPorts(config, client)),
    ...checkDescriptors(config),
    ...checkClock(skews, database.facts?.newestCall),
    ...ofCalls,
  ]
}

function requiredNode(): string {
  const text = readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')
  return JSON.parse(text).engines.node
}

function inOrder(findings: readonly Finding[]): Finding[] {
  return areas.flatMap((area) => findings.filter((one) => one.area === area))
}

function asText(findings: readonly Finding[], { problems, warnings }: { problems: number; warnings: number }): string {
  const rows = findings.flatMap(({ area, state, message, fix }) => [
    [state, area, message],
    ...(fix === undefined ? [] : [['', '', `→ ${fix}`]]),
  ])
  const count = (number: number, what: string) => `${number} ${what}${number === 1 ? '' : 's'}`
  const summary =
    problems + warnings === 0 ? 'Nothing to fix.' : `${count(problems, 'problem')}, ${count(warnings, 'warning')}.`
  return `${table(rows)}\n\n${summary}\n`
}
