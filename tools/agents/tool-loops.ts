import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { clients } from './clients.ts'
import { type LoopbackProvider, type Seen, startProvider } from './provider.ts'
import { startRouter } from './router.ts'
import { isComplete, lastWords, runSession, type Session, type SessionSettings } from './session.ts'
import { targets } from './targets.ts'

/** A session of one client with one target. */
export type Loop = { client: string; target: string; session: Session; seen: readonly Seen[] }

/** Lets each client complete its tool loop on each target, one after the other. */
export async function toolLoops(
  names: readonly string[],
  targetNames: readonly string[],
  settings: SessionSettings,
  report: (loop: Loop) => void,
): Promise<Loop[]> {
  const loops: Loop[] = []
  const providers = new Map<string, LoopbackProvider>()
  const urls: Record<string, string> = {}
  for (const name of targetNames) {
    const target = targets[name]
    if (!target) throw new Error(`There is no target "${name}": ${Object.keys(targets).join(', ')}`)
    const provider = await startProvider(target)
    providers.set(name, provider)
    urls[target.provider] = provider.url
  }
  const router = await startRouter(urls)
  try {
    for (const client of names) {
      for (const [target, provider] of providers) {
        provider.seen.length = 0
        const home = join(settings.folder, 'sessions', `${client}-${target}-${Date.now()}`)
        const place = { home, url: router.url, key: router.key, model: targets[target]?.model ?? '' }
        const session = await runSession(clientOf(client), place, settings)
        keep(home, session, provider.seen)
        const loop = { client, target, session, seen: [...provider.seen] }
        loops.push(loop)
        report(loop)
      }
    }
  } finally {
    await router.stop()
    for (const provider of providers.values()) provider.close()
  }
  return loops
}

function clientOf(name: string) {
  const client = clients[name]
  if (!client) throw new Error(`There is no client "${name}": ${Object.keys(clients).join(', ')}`)
  return client
}

/** Writes what the client said and what reached the provider beside the home of the session. */
function keep(home: string, { output }: Session, seen: readonly Seen[]): void {
  mkdirSync(home, { recursive: true })
  writeFileSync(join(home, 'output.txt'), output)
  writeFileSync(join(home, 'requests.json'), JSON.stringify(seen, null, 1))
}

/** One line of the report: passed, or the first refusal, or the client's last words. */
export function lineOf({ client, target, session, seen }: Loop): string {
  const refused = seen.filter(({ refusal }) => refusal)
  const [first] = refused
  const why = first ? `${first.path} refuses ${first.rule}: ${first.refusal?.slice(0, 300)}` : ''
  const seconds = `${(session.ms / 1_000).toFixed(1)} s, ${seen.length} requests`
  if (isComplete(session))
    return `${client} × ${target}: passed (${seconds})${first ? `, after ${refused.length} refusals: ${why}` : ''}`
  return `${client} × ${target}: FAILED (${seconds}) ${why || lastWords(session).slice(0, 500)}`
}

/** Clients by targets, as Markdown. */
export function tableOf(loops: readonly Loop[]): string {
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
  return `**${refused ?? 'not complete'}**`
}
