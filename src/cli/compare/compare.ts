import { printableInLine } from '../../core/printable.ts'
import { loadConfig } from '../../snapshot/config.ts'
import { openHttpClient } from '../../upstream/http/http-client.ts'
import {
  type Args,
  CommandError,
  jsonText,
  type Out,
  parseArguments,
  relativePath,
  runCommand,
  UsageError,
} from '../command.ts'
import { locateConfig } from '../read-config.ts'
import type { Difference } from './difference.ts'
import { costOf, differencesOf } from './differences.ts'
import { type Exchange, exchange, type Gateway } from './exchange.ts'
import { type ReadRequests, readRequests } from './requests.ts'

/** The text of `inference-router compare --help`. */
export const help = `Sends the same requests to this router and to another gateway, and shows every difference in their answers.

  inference-router compare --against URL --requests FROM [options]

  --against URL          the other gateway: http://127.0.0.1:4000, without /v1
  --requests FROM        JSON lines, in a file or in the files of a folder: bodies of Chat Completions, { "path", "body" }, files for batches
                         ({ "url", "body" }), or what the plugin log-payloads wrote
  --url URL              this router (default: the address of the configuration)
  --key-from NAME        the variable with the key for this router (default: INFERENCE_ROUTER_KEY)
  --against-key-from NAME  the variable with the key for the other gateway (default: the same)
  --limit N              send the first N requests only
  --exact                texts must be equal as well; without it only that both are there
  --timeout SECONDS      for one answer (default: 120)
  --config FILE          the configuration (or INFERENCE_ROUTER_CONFIG; else ./config.yaml)
  --json                 print JSON: {requests, unexplained, skipped, cost, latency, results: [{place, differences: […]}]}

Both gateways are called for real, one after the other, and so are their providers: both are charged. A difference that is always there is
explained: ids, names of models, members that one gateway adds. The exit code is 1 when a difference is not explained.
`

const text = { type: 'string' } as const
const flag = { type: 'boolean' } as const
const options = {
  ...{ against: text, requests: text, url: text, 'key-from': text, 'against-key-from': text, limit: text },
  ...{ exact: flag, timeout: text, config: text, json: flag },
} as const

/** Runs `inference-router compare`. Returns the exit code: 0 no unexplained difference, 1 some or failed, 2 wrong usage. */
export function run(args: string[], out: Out): Promise<number> {
  return runCommand(args, { help, out }, async () => {
    const parsed = parseArguments(args, { options })
    const from = parsed.text('requests')
    if (from === undefined) throw new UsageError('name the requests: --requests FILE.jsonl')
    const limit = wholeNumber(parsed, 'limit', Number.MAX_SAFE_INTEGER)
    const timeoutMs = wholeNumber(parsed, 'timeout', 120) * 1_000
    const gateways = await gatewaysOf(parsed)
    const read = readRequests(from)
    if (read.requests.length === 0) throw new CommandError(`${from} has no request that can be sent.`)
    const requests = read.requests.slice(0, limit)
    const results = await resultsOf(requests, gateways, { exact: parsed.flag('exact'), timeoutMs })
    const report = reportOf(results, read)
    out.stdout(parsed.flag('json') ? jsonText(report) : asText(report))
    return report.unexplained === 0 ? 0 : 1
  })
}

function wholeNumber(args: Args, name: string, usual: number): number {
  const written = args.text(name) ?? String(usual)
  if (/^[1-9]\d{0,15}$/.test(written)) return Number(written)
  throw new UsageError(`--${name} is '${written}'; write a whole number of at least 1`)
}

type Gateways = { here: Gateway; there: Gateway }

async function gatewaysOf(args: Args): Promise<Gateways> {
  const against = args.text('against')
  if (against === undefined) throw new UsageError('name the other gateway: --against URL')
  const path = locateConfig(args.text('config'))
  const own = args.text('key-from') ?? 'INFERENCE_ROUTER_KEY'
  const here = { url: addressIn(args.text('url') ?? (await ownAddress(path)), '--url'), key: keyIn(own) }
  return { here, there: { url: addressIn(against, '--against'), key: keyIn(args.text('against-key-from') ?? own) } }
}

async function ownAddress(path: string): Promise<string> {
  const { config } = await loadConfig(path, process.env)
  const { host, port } = config?.server ?? { host: '127.0.0.1', port: 8787 }
  const reached = host === '0.0.0.0' ? '127.0.0.1' : host === '::' ? '[::1]' : host.includes(':') ? `[${host}]` : host
  return `http://${reached}:${port}`
}

function addressIn(written: string, option: string): string {
  const url = URL.parse(written)
  if (url && /^https?:$/.test(url.protocol) && url.username === '' && url.search === '')
    return `${url.origin}${url.pathname.replace(/\/(?:v1\/?)?$/, '')}`
  throw new UsageError(`${option} is '${written}'; write an address such as http://127.0.0.1:4000`)
}

function keyIn(name: string): string {
  const key = process.env[name]
  if (key) return key
  throw new CommandError(
    `${name} is not set: it must have the key that clients send (--key-from and --against-key-from name other variables).`,
  )
}

type Result = { place: string; path: string; here: Side; there: Side; differences: Difference[] }
type Side = { status: number; ms: number; first_ms: number; cost?: number }

async function resultsOf(
  requests: ReadRequests['requests'],
  { here, there }: Gateways,
  { exact, timeoutMs }: { exact: boolean; timeoutMs: number },
): Promise<Result[]> {
  const client = openHttpClient()
  try {
    const results: Result[] = []
    for (const [index, request] of requests.entries()) {
      const ask = (gateway: Gateway) => exchange(request, gateway, { client, timeoutMs })
      // By turns, so that a prompt that a provider has cached speeds up neither.
      const isFirst = index % 2 === 0
      const first = await ask(isFirst ? here : there)
      const second = await ask(isFirst ? there : here)
      const [own, other] = isFirst ? [first, second] : [second, first]
      const { place, path } = request
      results.push({
        place,
        path,
        here: sideOf(own),
        there: sideOf(other),
        differences: differencesOf(own, other, { exact }),
      })
    }
    return results
  } finally {
    await client.close()
  }
}

function sideOf(answer: Exchange): Side {
  const cost = costOf(answer)
  const [ms, first_ms] = [answer.ms, answer.firstMs].map(Math.round) as [number, number]
  return { status: answer.status, ms, first_ms, ...(cost !== undefined && { cost }) }
}

type Report = {
  requests: number
  /** Number of requests with a difference that is not explained. */
  unexplained: number
  skipped: ReadRequests['skipped']
  cost: { here: number; there: number; compared: number }
  /** Medians. Milliseconds. */
  latency: { here: number; there: number }
  results: Result[]
}

function reportOf(results: Result[], { skipped }: ReadRequests): Report {
  const priced = results.filter(({ here, there }) => here.cost !== undefined && there.cost !== undefined)
  const sum = (side: 'here' | 'there') => priced.reduce((total, result) => total + (result[side].cost ?? 0), 0)
  const median = (side: 'here' | 'there') =>
    results.map((result) => result[side].ms).toSorted((one, other) => one - other)[Math.floor(results.length / 2)] ?? 0
  return {
    requests: results.length,
    unexplained: results.filter(({ differences }) => differences.some(isUnexplained)).length,
    skipped,
    cost: { here: sum('here'), there: sum('there'), compared: priced.length },
    latency: { here: median('here'), there: median('there') },
    results,
  }
}

function isUnexplained({ explained }: Difference): boolean {
  return explained === undefined
}

function asText({ requests, unexplained, skipped, cost, latency, results }: Report): string {
  const shown = results.flatMap(({ place, path, differences }) => {
    const lines = differences.filter(isUnexplained).map((one) => `  ${differenceText(one)}\n`)
    return lines.length === 0 ? [] : [`${relativePath(place)} ${path}\n${lines.join('')}`]
  })
  const reasons = Map.groupBy(skipped, ({ reason }) => reason)
  const left = [...reasons].map(([reason, all]) => `${all.length} requests were not sent: ${reason}\n`)
  const explained = Map.groupBy(
    results.flatMap(({ differences }) => differences.filter((one) => !isUnexplained(one))),
    ({ explained = '' }) => explained,
  )
  const known = [...explained].map(([why, all]) => `  ${String(all.length).padStart(4)}  ${pathsOf(all)}: ${why}\n`)
  const usd = (amount: number) => `$${amount.toFixed(6)}`
  return `${shown.join('')}${left.join('')}${known.length === 0 ? '' : `Differences that are explained:\n${known.join('')}`}${requests} requests, ${unexplained} with differences that are not explained
cost      ${usd(cost.here)} here, ${usd(cost.there)} there (of ${cost.compared} requests)
latency   ${latency.here} ms here, ${latency.there} ms there (medians)
`
}

function pathsOf(all: readonly Difference[]): string {
  const paths = [...new Set(all.map(({ path, kind }) => path ?? kind))]
  return `${paths.slice(0, 4).join(', ')}${paths.length > 4 ? ' …' : ''}`
}

function differenceText({ kind, path, here, there }: Difference): string {
  const value = (one: Difference['here']) =>
    printableInLine(one === undefined ? 'nothing' : JSON.stringify(one).slice(0, 200))
  const what = path === undefined ? kind.replace('_', ' ') : path
  return `${what}: ${value(here)} here, ${value(there)} there`
}
