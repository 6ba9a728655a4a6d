import { lookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import type { buildConnector } from 'undici'
import { isPublicAddress } from './public-address.ts'

/** A `fetch` of its own, with its connections. */
export type GuardedFetch = { fetch: typeof globalThis.fetch; close(): Promise<void> }

/**
 * Opens a `fetch` that connects to public addresses only, and to these hosts (or `host:port`) whatever their address is. Every
 * address is checked as it is connected to, those of redirects too.
 */
export function openGuardedFetch(hosts: readonly string[]): GuardedFetch {
  const allowed = new Set(hosts.map((host) => host.toLowerCase()))
  let opened: Promise<Opened> | undefined
  return {
    async fetch(url, init) {
      opened ??= open(allowed)
      const { fetch, dispatcher } = await opened
      return await fetch(url, { ...init, dispatcher })
    },
    async close() {
      // What could not be opened has nothing to end.
      await (await opened?.catch(() => undefined))?.dispatcher.destroy()
    },
  }
}

type Undici = typeof import('undici')
type Opened = { fetch: FetchOver; dispatcher: InstanceType<Undici['Agent']> }
/** The package's types of requests and responses are others than the platform's, which they implement. */
type FetchOver = (url: unknown, init: object) => Promise<Response>

async function open(allowed: ReadonlySet<string>): Promise<Opened> {
  const { Agent, buildConnector, fetch } = await import('undici')
  const own = { timeout: connectMs, allowH2: false }
  const free = buildConnector(own)
  const guarded = buildConnector({ ...own, lookup: publicAddresses })
  const connect: buildConnector.connector = (options, done) => {
    const { hostname, port, protocol } = options
    const host = hostname.toLowerCase()
    const withPort = `${host}:${port || (protocol === 'https:' ? 443 : 80)}`
    if (allowed.has(host) || allowed.has(withPort)) return free(options, done)
    const address = host.replace(/^\[|\]$/g, '')
    if (isIP(address) && !isPublicAddress(address)) return done(notPublic(hostname), null)
    return guarded(options, done)
  }
  return { fetch: fetch as unknown as FetchOver, dispatcher: new Agent({ connect }) }
}

const connectMs = 10_000

/** Looks up all addresses of a name, when all of them are public: DNS rebinding mixes a private one among them. */
const publicAddresses: LookupFunction = (name, options, done) => {
  lookup(name, { all: true, order: 'verbatim' }, (error, found) => {
    if (error) return done(error, '')
    const [first] = found
    if (!first || !found.every(({ address }) => isPublicAddress(address))) return done(notPublic(name), '')
    return options.all ? done(null, found) : done(null, first.address, first.family)
  })
}

function notPublic(host: string): Error {
  return new Error(`the address of ${host} is not public, and config.yaml does not allow the host to this plugin`)
}
