import { secretOf } from './access/credentials.ts'
import type { Access } from './access/keys.ts'
import { chat } from './api/chat/face.ts'
import { messages } from './api/messages/face.ts'
import { type ListForm, modelEntry, modelList, type NamedModel } from './api/models/list.ts'
import { modelPage, pagedModel } from './api/models/page.ts'
import { responses } from './api/responses/face.ts'
import { RouterError } from './core/errors.ts'
import type { JsonObject } from './core/json.ts'
import { countTokens } from './count.ts'
import type { CallRoute, JsonRequest, JsonRoute } from './server.ts'

/** The client APIs and where they listen. */
export const callRoutes: readonly CallRoute[] = [
  { path: '/v1/chat/completions', face: chat },
  { path: '/v1/messages', face: messages },
  { path: '/v1/messages/count_tokens', face: messages, answer: countTokens },
  { path: '/v1/responses', face: responses },
]

/** What the model lists show, asked anew for every request: the same array as long as nothing has changed. */
export type ModelSource = { models(): readonly NamedModel[]; managedPolicies(): readonly NamedModel[]; access: Access }

/** The model lists and single models: open to everybody, but a key that is shown must be good. */
export function modelRoutes({ models, managedPolicies, access }: ModelSource): JsonRoute[] {
  const open = (path: string, answer: JsonRoute['answer']): JsonRoute => ({
    path,
    faceOf: (request) => (speaksMessages(request) ? messages : undefined),
    answer: (request) => {
      const secret = secretOf(request.headers)
      if (secret !== undefined) access.identify(secret)
      return answer(request)
    },
  })
  const list = (path: string, form: ListForm): JsonRoute => {
    const write = remembering((listed) => modelList(listed, form))
    return open(path, () => ({ text: write(models()) }))
  }
  const chatModels = list('/v1/models', { api: 'chat' })
  const writeManaged = remembering((listed) => modelList(listed, { flatPrices: true }))
  return [
    open('/v1/models', (request) => {
      if (!speaksMessages(request)) return chatModels.answer(request)
      return { text: JSON.stringify(modelPage(models(), request.query)) }
    }),
    list('/v1/models/chat', { api: 'chat' }),
    list('/v1/models/all', { flatPrices: true }),
    { path: '/v1/models/managed', answer: () => ({ text: writeManaged(managedPolicies()) }) },
    open('/v1/models/*id', (request) => {
      const id = [request.params.id].flat().join('/')
      const found = models().find((model) => model.id === id)
      if (!found) throw new RouterError('model_not_found', `There is no model '${id}'. GET /v1/models lists them.`)
      const write = speaksMessages(request) ? pagedModel : modelEntry
      return { text: JSON.stringify(write(id, found.entry)) }
    }),
  ]
}

/** Clients of the Messages API say its version with every request. */
function speaksMessages({ headers }: Pick<JsonRequest, 'headers'>): boolean {
  return headers['anthropic-version'] !== undefined
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
