import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import type { JsonRoute } from './server.ts'

/** `GET /openapi.json`: the description of every route, without authentication. Read on the first request. */
export function openapiRoutes(): JsonRoute[] {
  let text: string | undefined
  return [
    {
      path: '/openapi.json',
      answer: () => {
        text ??= JSON.stringify(readOpenapi())
        return { text }
      },
    },
  ]
}

/** The OpenAPI document of the service. */
export function readOpenapi(): unknown {
  return parse(readFileSync(join(import.meta.dirname, '../../schemas/openapi.yaml'), 'utf8'))
}
