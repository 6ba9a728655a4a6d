import { chat } from '../api/chat/api.ts'
import { messages } from '../api/messages/api.ts'
import { completions } from '../api/operations/completions.ts'
import { decisions } from '../api/operations/decisions.ts'
import { embeddings } from '../api/operations/embeddings.ts'
import { imageEdits } from '../api/operations/image-edits.ts'
import { images } from '../api/operations/images.ts'
import { moderations } from '../api/operations/moderations.ts'
import { rerank } from '../api/operations/rerank.ts'
import { speech } from '../api/operations/speech.ts'
import { transcriptions } from '../api/operations/transcriptions.ts'
import { responses } from '../api/responses/api.ts'
import { compact } from '../call/kinds/compact.ts'
import { countTokens } from '../call/kinds/count.ts'
import type { Trouble } from '../routing/health.ts'
import type { CallRoute } from './calls.ts'
import type { OperationRoute } from './operations.ts'
import type { JsonRequest, JsonRoute } from './server.ts'

/** The paths of the client APIs. */
export const callRoutes: readonly (CallRoute | OperationRoute)[] = [
  { path: '/v1/chat/completions', clientApi: chat },
  { path: '/v1/messages', clientApi: messages },
  { path: '/v1/messages/count_tokens', clientApi: messages, handler: countTokens },
  { path: '/v1/responses', clientApi: responses },
  { path: '/v1/responses/input_tokens', clientApi: responses, handler: countTokens },
  { path: '/v1/responses/compact', clientApi: responses, handler: compact },
  { path: '/v1/images/generations', operation: images },
  { path: '/v1/completions', operation: completions },
  { path: '/v1/embeddings', operation: embeddings },
  { path: '/v1/rerank', operation: rerank },
  { path: '/v1/moderations', operation: moderations },
  { path: '/v1/images/edits', operation: imageEdits },
  { path: '/v1/audio/transcriptions', operation: transcriptions },
  { path: '/v1/decisions', operation: decisions },
  { path: '/v1/audio/speech', operation: speech },
]

/** Whether the process can serve, why not, and the problems of the last refused reload. */
export type Readiness = {
  ready: boolean
  generation: number
  reasons: string[]
  problems: string[]
  /** What of the providers takes no calls, or not all. */
  troubled: readonly Trouble[]
}

/**
 * `GET /health`: the process is alive. `GET /ready`: it is able to serve, else 503 with the reasons. What the problems of files and the
 * troubles of providers are is told only to those who may read them.
 */
export function healthRoutes(
  readiness: () => Readiness,
  mayReadProblems: (request: JsonRequest) => boolean,
): JsonRoute[] {
  return [
    { path: '/health', answer: () => ({ text: JSON.stringify({ status: 'ok' }) }) },
    {
      path: '/ready',
      answer: (request) => {
        const { ready, problems, troubled, ...facts } = readiness()
        const counts = { problem_count: problems.length, troubled_count: troubled.length }
        const told = { ...facts, ...counts, ...(mayReadProblems(request) && { problems, troubled }) }
        const text = JSON.stringify({ status: ready ? 'ready' : 'not ready', ...told })
        return { status: ready ? 200 : 503, text }
      },
    },
  ]
}
