import { secretOf } from '../access/client-secret.ts'
import { type Access, requirePermission } from '../access/keys.ts'
import { inputList } from '../api/responses/input-list.ts'
import { RouterError } from '../core/errors.ts'
import type { Level } from '../store/keys.ts'
import type { Store } from '../store/open.ts'
import type { StoredResponse } from '../store/responses.ts'
import type { JsonRequest, JsonRoute } from './server.ts'

/** What may be done with a response that is kept. Those of other organizations are not there: 404. */
export function keptResponseRoutes({ responses }: Pick<Store, 'responses'>, access: Access): JsonRoute[] {
  const organizationOf = ({ headers }: JsonRequest, level: Level): string => {
    const key = access.identify(secretOf(headers))
    requirePermission(key, 'completions', level)
    return key.organization
  }
  const found = (request: JsonRequest, level: Level): StoredResponse => {
    const id = idOf(request)
    return responses.find(organizationOf(request, level), id) ?? missing(id)
  }
  return [
    {
      path: '/v1/responses/:id',
      answer: (request) => {
        const { response } = found(request, 'read')
        if (request.query.stream === 'true') throw new RouterError('invalid_request', noStream, { param: 'stream' })
        return { text: response }
      },
    },
    {
      path: '/v1/responses/:id',
      method: 'delete',
      answer: (request) => {
        const id = idOf(request)
        if (!responses.delete(organizationOf(request, 'write'), id)) missing(id)
        return { text: JSON.stringify({ id, object: 'response', deleted: true }) }
      },
    },
    {
      path: '/v1/responses/:id/input_items',
      answer: (request) => {
        const { id, input } = found(request, 'read')
        return { text: JSON.stringify(inputList(JSON.parse(input), id, plainQuery(request.query))) }
      },
    },
    {
      path: '/v1/responses/:id/cancel',
      method: 'post',
      answer: (request) => {
        found(request, 'write')
        throw new RouterError('invalid_request', notInBackground)
      },
    },
  ]
}

const noStream = 'stream replays a response made in the background; this one is given whole: leave stream out.'
const notInBackground =
  'This response has ended and cannot be cancelled. Only one made with background: true can, and none is made so here; to stop one under way close its connection.'

function idOf({ params }: JsonRequest): string {
  return String(params.id)
}

function missing(id: string): never {
  throw new RouterError('not_found', `Response with id '${id}' not found.`)
}

/** The parameters that are given once; of a repeated one the last holds. */
function plainQuery(query: JsonRequest['query']): { [name: string]: string } {
  const texts = Object.entries(query).map(([name, value]) => [name, Array.isArray(value) ? value.at(-1) : value])
  return Object.fromEntries(texts.filter(([, value]) => typeof value === 'string'))
}
