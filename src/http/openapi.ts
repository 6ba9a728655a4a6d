import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { tagged } from './entity-tag.ts'
import type { JsonAnswer, JsonRoute } from './server.ts'

/** `GET /openapi.json`: the description of every route, without authentication. Read on the first request. */
export function openapiRoutes(): JsonRoute[] {
  let answer: JsonAnswer | undefined
  return [
    {
      path: '/openapi.json',
      answer: () => {
        answer ??= tagged(JSON.stringify(readOpenapi()))
        return answer
      },
    },
  ]
}

/** The OpenAPI document of the service. */
export function readOpenapi(): unknown {
  return parse(readFileSync(join(import.meta.dirname, '../../schemas/openapi.yaml'), 'utf8'))
}
