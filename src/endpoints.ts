import { secretOf } from './access/credentials.ts'
import type { Access } from './access/keys.ts'
import { chat } from './api/chat/face.ts'
import { messages } from './api/messages/face.ts'
import { type ListForm, modelList, type NamedModel } from './api/models/list.ts'
import { responses } from './api/responses/face.ts'
import type { JsonObject } from './core/json.ts'
import { countTokens } from './count.ts'
import type { CallRoute, JsonRoute } from './server.ts'

/** The client APIs and where they listen. */
export const callRoutes: readonly CallRoute[] = [
  { path: '/v1/chat/completions', face: chat },
  { path: '/v1/messages', face: messages },
  { path: '/v1/messages/count_tokens', face: messages, answer: countTokens },
  { path: '/v1/responses', face: responses },
]

/** What the model lists show, asked anew for every request: the same array as long as nothing has changed. */
export type ModelSource = { models(): readonly NamedModel[]; managedPolicies(): readonly NamedModel[]; access: Access }

/** The model lists: open to everybody, but a key that is shown must be good. */
export function modelRoutes({ models, managedPolicies, access }: ModelSource): JsonRoute[] {
  const list = (path: string, form: ListForm): JsonRoute => {
    const write = remembering((listed) => modelList(listed, form))
    return {
      path,
      answer: ({ headers }) => {
        const secret = secretOf(headers)
        if (secret !== undefined) access.identify(secret)
        return { text: write(models()) }
      },
    }
  }
  const writeManaged = remembering((listed) => modelList(listed, { flatPrices: true }))
  return [
    list('/v1/models', { api: 'chat' }),
    list('/v1/models/chat', { api: 'chat' }),
    list('/v1/models/all', { flatPrices: true }),
    { path: '/v1/models/managed', answer: () => ({ text: writeManaged(managedPolicies()) }) },
  ]
}

/** The JSON text of what a function makes of a list, made once for each list. */
function remembering(make: (listed: readonly NamedModel[]) => JsonObject): (listed: readonly NamedModel[]) => string {
  const made = new WeakMap<readonly NamedModel[], string>()
  return (listed) => {
    const text = made.get(listed) ?? JSON.stringify(make(listed))
    made.set(listed, text)
    return text
  }
}

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
