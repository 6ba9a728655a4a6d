import { chat } from '../api/chat/api.ts'
import { messages } from '../api/messages/api.ts'
import { responses } from '../api/responses/api.ts'
import { countTokens } from '../line/count-tokens.ts'
import type { CallRoute, JsonRoute } from './server.ts'

/** The client APIs and where they listen. */
export const callRoutes: readonly CallRoute[] = [
  { path: '/v1/chat/completions', face: chat },
  { path: '/v1/messages', face: messages },
  { path: '/v1/messages/count_tokens', face: messages, answer: countTokens },
  { path: '/v1/responses', face: responses },
]

/** Whether the process can serve, and what stands in the way or was refused at the last reload. */
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
