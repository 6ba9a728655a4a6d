import { afterAll } from 'vitest'
import { jsonOf, readFields, tokensOfText } from '../../src/api/operations/shared.ts'
import { admitOperation, countableTexts } from '../../src/call/admission/admission.ts'
import type { CallKind } from '../../src/call/call-kind.ts'
import { isLarger } from '../../src/call/targets/unable-targets.ts'
import type { ReadCall } from '../../src/call/types.ts'
import type { JsonObject } from '../../src/core/json.ts'
import type { OperationRequest } from '../../src/core/operation.ts'
import type { Usage } from '../../src/core/usage.ts'
import type { CallRoute } from '../../src/http/calls.ts'
import { callRoutes } from '../../src/http/endpoints.ts'
import type { Target } from '../../src/manifest/target.ts'
import { highestCost } from '../../src/money/price.ts'
import { unreadable } from '../../src/upstream/answer-body.ts'
import { requestJson } from '../../src/upstream/provider-answer.ts'
import { authentication, bodyBounds } from './access-steps.ts'
import { allowedTargets } from './allowed-steps.ts'
import { attempts, retries } from './attempt-steps.ts'
import { type Route, routes } from './examples.ts'
import { answerBounds, routerConcurrency, targetConcurrency, targetHealth } from './health-steps.ts'
import { limitsAndMoney } from './money-steps.ts'
import { routing } from './routing-steps.ts'
import { rowsAndMetrics } from './row-steps.ts'
import { tests } from './table.ts'

// A kind of call that the router does not have, at a route of its own. It says what differs about it, and names no step: the steps it
// passes here are those of `handleCall`.

type Read = ReadCall & { request: OperationRequest }
type Greeted = { body: JsonObject; usage: Usage; estimated: boolean }

/** The most that a greeting can use: each byte of the prompt may be a token. */
const most = ({ fields: { prompt } }: OperationRequest, counted?: number) => ({
  input: counted ?? Buffer.byteLength(String(prompt)),
  output: 100,
})
const texts = ({ fields: { prompt } }: OperationRequest) => [String(prompt)]

const promptTokensOf = (request: OperationRequest) => tokensOfText(texts(request).join())

const greeting: CallKind<Read, Greeted> = {
  api: 'completions',
  operation: 'complete',
  mediaParam: 'prompt',
  read(body) {
    const json = jsonOf(body)
    const request = readFields('complete', json, { fields: { prompt: json.prompt ?? '' }, stream: false })
    const { model, routing: asked, user, requesty, unread } = request
    return {
      ...{ model, stream: false, routing: asked, request },
      described: { user, requesty },
      unknownFields: Object.keys(unread),
      body: () => ({ model, ...request.fields, ...unread }),
    }
  },
  purpose: (_, explanation) => ({
    ...{ apis: ['completion'], explanation },
    serves: ({ provider }) => provider.operations?.complete !== undefined,
    name: 'endpoint for greetings',
  }),
  promptTokens: ({ request }) => promptTokensOf(request),
  content: ({ request }) => request.fields,
  restricted: ({ request: { unread } }) => ({
    api: 'chat',
    operation: 'complete',
    body: unread,
    mayStore: false,
    resources: { body: unread, uses: [] },
  }),
  reserve(applicant, services) {
    const { read, at, counted } = applicant
    const usage = most(read.request, counted)
    const parts = { promptTokens: promptTokensOf(read.request), abandoned: { input: usage.input } }
    const mostAt = ({ entry }: Target) => ({ usage, nanoUsd: highestCost(usage, entry, at) })
    return admitOperation({ ...applicant, ...parts, most: mostAt }, services)
  },
  countable({ read: { request }, ...applicant }, services) {
    const costAt = ({ entry }: Target, counted: number) => highestCost(most(request, counted), entry, applicant.at)
    return countableTexts(applicant, { texts: texts(request), costAt }, services)
  },
  ordering: ({ request: { model, user } }) => ({
    request: { model, messages: [], origin: { api: 'chat', body: {} }, ...(user !== undefined && { user }) },
    generates: false,
  }),
  serve: ({ read, explanation, admission }) => ({
    canTake: (other, refusedBy, how) => how === 'larger' && isLarger(other, refusedBy, admission.promptTokens),
    async ask(target, attempt) {
      const body = { ...read.request.fields, model: target.model }
      await attempt.beforeSend(body)
      const outgoing = { ...attempt, path: '/completions', body, forwardedHeaders: [] }
      const { exhaustedMs, ...answer } = await requestJson(target, outgoing, await attempt.client())
      if (!Array.isArray(answer.body.choices)) throw unreadable(target.provider, 'sent no choices.')
      const { usage } = answer.body as { usage?: { prompt_tokens: number; completion_tokens: number } }
      const counted = usage && { input: usage.prompt_tokens, output: usage.completion_tokens }
      return { body: answer.body, usage: counted ?? { input: 10 }, estimated: counted === undefined, exhaustedMs }
    },
    measure: ({ usage, estimated }) => ({ usage, estimated }),
    reportedModel: ({ body }) => (typeof body.model === 'string' ? body.model : undefined),
    async reply({ answer, settlement, headers, ...attempt }) {
      const measured = { usage: answer.usage, estimated: answer.estimated }
      const { cost } = await settlement.complete({ ...attempt, measured })
      const made = { ...answer.body, ...(explanation && { router: explanation.facts() }) }
      return { headers: { ...headers, 'x-router-cost': String(cost.nanoUsd / 1e9) }, body: JSON.stringify(made) }
    },
  }),
  plugins: {
    given: ({ request: { operation, model, fields } }) => ({ operation, model, fields }),
    changed: (read, asked) => {
      if (!('fields' in asked)) return read
      const { model, fields } = asked
      return { ...read, model, request: { ...read.request, model, fields } }
    },
  },
}

const route: Route = {
  ...{ path: '/v1/greetings', format: 'chat', models: 'completion' },
  ...{ body: { prompt: 'Hello' }, text: 'Hello' },
}
const served: CallRoute = { path: route.path, kind: greeting as CallRoute['kind'] }

const servedRoutes = callRoutes as CallRoute[]
const worldRoutes = routes as Route[]
servedRoutes.push(served)
worldRoutes.push(route)

tests(
  [
    ...[authentication, bodyBounds, allowedTargets, routing, limitsAndMoney, attempts, rowsAndMetrics, retries],
    ...[answerBounds, targetHealth, targetConcurrency, routerConcurrency],
  ],
  [route],
)

afterAll(() => {
  servedRoutes.splice(servedRoutes.indexOf(served), 1)
  worldRoutes.splice(worldRoutes.indexOf(route), 1)
})
