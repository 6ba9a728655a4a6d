import { chat } from '../api/chat/api.ts'
import { messages } from '../api/messages/api.ts'
import { responses } from '../api/responses/api.ts'
import { countTokens } from '../line/count-tokens.ts'
import type { CallRoute, JsonRoute } from './server.ts'

/** The paths of the client APIs. */
export const callRoutes: readonly CallRoute[] = [
  { path: '/v1/chat/completions', clientApi: chat },
  { path: '/v1/messages', clientApi: messages },
  { path: '/v1/messages/count_tokens', clientApi: messages, handler: countTokens },
  { path: '/v1/responses', clientApi: responses },
]

/** Whether the process can serve, why not, and the problems of the last refused reload. */
export type Readiness = { ready: boolean; generation: number; reasons: string[]; problems: string[] }

/** `GET /health`: the process is alive. `GET /ready`: it is able to serve, else 503 with the reasons. */
export function healthRoutes(readiness: () => Readiness): JsonRoute[] {
  return [
    { path: '/health', answer: () => ({ text: JSON.stringify({ status: 'ok' }) }) },
    {
      path: '/ready',
      answer: () => {
        const { ready, ...facts } = readiness()
        const text = JSON.stringify({ status: ready ? 'ready' : 'not ready', ...facts })
        return { status: ready ? 200 : 503, text }
      },
    },
  ]
}
