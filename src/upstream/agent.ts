import { createRequire } from 'node:module'
import type * as undici from 'undici'

/** A pool of connections. The package as a whole also loads fetch, WebSocket and caches, which nothing here uses: 6 MB. */
export const Agent = createRequire(import.meta.url)('undici/lib/dispatcher/agent.js') as typeof undici.Agent
export type Agent = undici.Agent
