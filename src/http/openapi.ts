import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { tagged } from './respond.ts'
import type { JsonAnswer, JsonRoute } from './types.ts'

/** Serves `GET /openapi.json`: the description of every route, without authentication. Read on the first request. */
export function openapiRoutes(): JsonRoute[] {
  let answer: Promise<JsonAnswer> | undefined
  return [
    {
      path: '/openapi.json',
      answer: () => {
        answer ??= readOpenapi().then((document) => tagged(JSON.stringify(document)))
        return answer
      },
    },
  ]
}

/** Reads the OpenAPI document of the service. */
async function readOpenapi(): Promise<unknown> {
  const { parse } = await import('yaml')
  return parse(readFileSync(join(import.meta.dirname, '../../schemas/openapi.yaml'), 'utf8'))
}
