import { chat } from '../api/chat/api.ts'
import { messages } from '../api/messages/api.ts'
import { speech } from '../api/operations/audio/speech.ts'
import { transcriptions } from '../api/operations/audio/transcriptions.ts'
import { completions } from '../api/operations/completions.ts'
import { decisions } from '../api/operations/decisions/decisions.ts'
import { embeddings } from '../api/operations/embeddings.ts'
import { imageEdits, images } from '../api/operations/images/images.ts'
import { moderations } from '../api/operations/moderations.ts'
import { rerank } from '../api/operations/rerank.ts'
import { responses } from '../api/responses/api.ts'
import { chatKind } from '../call/kinds/chat.ts'
import { compactKind } from '../call/kinds/compact.ts'
import { countKind } from '../call/kinds/count.ts'
import { operationKind } from '../call/kinds/operation.ts'
import type { TargetOutage } from '../routing/health/health.ts'
import type { CallRoute } from './calls.ts'
import type { JsonRequest, JsonRoute } from './types.ts'

/** The paths of the client APIs. */
export const callRoutes: readonly CallRoute[] = [
  { path: '/v1/chat/completions', kind: chatKind(chat) },
  { path: '/v1/messages', kind: chatKind(messages) },
  { path: '/v1/messages/count_tokens', kind: countKind(messages) },
  { path: '/v1/responses', kind: chatKind(responses) },
  { path: '/v1/responses/input_tokens', kind: countKind(responses) },
  { path: '/v1/responses/compact', kind: compactKind(responses) },
  { path: '/v1/images/generations', kind: operationKind(images) },
  { path: '/v1/completions', kind: operationKind(completions) },
  { path: '/v1/embeddings', kind: operationKind(embeddings) },
  { path: '/v1/rerank', kind: operationKind(rerank) },
  { path: '/v1/moderations', kind: operationKind(moderations) },
  { path: '/v1/images/edits', kind: operationKind(imageEdits) },
  { path: '/v1/audio/transcriptions', kind: operationKind(transcriptions) },
  { path: '/v1/decisions', kind: operationKind(decisions) },
  { path: '/v1/audio/speech', kind: operationKind(speech) },
]

/** State of the process: if it can serve, why not, and the problems of files that are not in use. */
export type Readiness = {
  ready: boolean
  generation: number
  reasons: string[]
  problems: string[]
  /** Parts of the providers that take no calls, or not all. */
  degraded: readonly TargetOutage[]
}

/** Caller that may read details: what concerns everybody, and its own organization; or all of them. */
export type HealthReader = { mayRead(organization: string | undefined): boolean }

/**
 * Serves `GET /health`: the process is alive. `GET /ready`: it is able to serve, else 503 with the reasons. Details of file problems and of
 * degraded providers are sent only to those who may read them.
 */
export function healthRoutes(
  readiness: () => Readiness,
  readerOf: (request: JsonRequest) => Promise<HealthReader | undefined>,
): JsonRoute[] {
  return [
    { path: '/health', answer: () => ({ text: JSON.stringify({ status: 'ok' }) }) },
    {
      path: '/ready',
      answer: async (request) => {
        const { ready, problems, degraded, ...facts } = readiness()
        const count = degraded.length
        // What is degraded has its former name as well, for one release.
        const counts = { problem_count: problems.length, degraded_count: count, troubled_count: count }
        const reader = await readerOf(request)
        const shown = degraded.filter(({ organization }) => reader?.mayRead(organization))
        const details = reader && { problems, degraded: shown, troubled: shown }
        const text = JSON.stringify({ status: ready ? 'ready' : 'not ready', ...facts, ...counts, ...details })
        return { status: ready ? 200 : 503, text }
      },
    },
  ]
}
