import { type Access, requirePermission } from '../access/keys.ts'
import { secretOf } from '../access/secrets.ts'
import { inputList } from '../api/responses/input-list.ts'
import { RouterError } from '../core/errors.ts'
import type { Json } from '../core/json.ts'
import { isLongerThan, jsonPieces } from '../core/json-pieces.ts'
import { isLong, maxInOneStep, yieldBetween, yieldEach, yieldToEventLoop } from '../runtime/event-loop.ts'
import type { Level } from '../store/keys.ts'
import type { Store } from '../store/open.ts'
import type { StoredResponse } from '../store/responses.ts'
import type { JsonRequest, JsonRoute } from './types.ts'

/** Reads and deletes stored responses. Those of other organizations are 404. */
export function storedResponseRoutes({ responses }: Pick<Store, 'responses'>, access: Access): JsonRoute[] {
  const organizationOf = async ({ headers }: JsonRequest, level: Level): Promise<string> => {
    const key = await access.identify(secretOf(headers))
    requirePermission(key, ['completions'], level)
    return key.organization
  }
  const found = async (request: JsonRequest, level: Level): Promise<StoredResponse> => {
    const id = idOf(request)
    return (await responses.findResponse(await organizationOf(request, level), id)) ?? missing(id)
  }
  return [
    {
      path: '/v1/responses/:id',
      answer: async (request) => {
        const { response } = await found(request, 'read')
        if (request.query.stream === 'true') throw new RouterError('invalid_request', noStream, { param: 'stream' })
        return { text: response }
      },
    },
    {
      path: '/v1/responses/:id',
      method: 'delete',
      answer: async (request) => {
        const id = idOf(request)
        if (!(await responses.delete(await organizationOf(request, 'write'), id))) missing(id)
        return { text: JSON.stringify({ id, object: 'response', deleted: true }) }
      },
    },
    {
      path: '/v1/responses/:id/input_items',
      async answer(request) {
        const id = idOf(request)
        const items = await inputItems(responses, await organizationOf(request, 'read'), id)
        const list = inputList(items, id, plainQuery(request.query))
        if (!isLongerThan(list, maxInOneStep)) return { text: JSON.stringify(list) }
        return { body: yieldEach(await jsonPieces(list, yieldBetween())) }
      },
    },
    {
      path: '/v1/responses/:id/cancel',
      method: 'post',
      answer: async (request) => {
        await found(request, 'write')
        throw new RouterError('invalid_request', notInBackground)
      },
    },
  ]
}

/** Returns the items of an input; those of a long one are read, parsed and written in steps, between which calls run. */
async function inputItems({ find }: Store['responses'], organization: string, id: string): Promise<Json[]> {
  const { input } = (await find(organization, id)) ?? missing(id)
  if (!isLong(input.length)) return JSON.parse(input)
  await yieldToEventLoop()
  const items = JSON.parse(input)
  await yieldToEventLoop()
  return items
}

const noStream =
  'Only a response made with background: true can be replayed as a stream. Leave out stream to get this one as JSON.'
const notInBackground =
  'This response is complete and cannot be cancelled. Only background responses can be, and this router makes none; to stop a running response, close its connection.'

function idOf({ params }: JsonRequest): string {
  return String(params.id)
}

function missing(id: string): never {
  throw new RouterError('not_found', `Response with id '${id}' not found.`)
}

/** Returns query parameters as texts; of a repeated one the last value counts. */
function plainQuery(query: JsonRequest['query']): { [name: string]: string } {
  const texts = Object.entries(query).map(([name, value]) => [name, Array.isArray(value) ? value.at(-1) : value])
  return Object.fromEntries(texts.filter(([, value]) => typeof value === 'string'))
}
