import type { OperationApi } from '../../api/operation-api.ts'
import { resourceUses } from '../../api/resource-uses.ts'
import { asRouterError } from '../../core/errors.ts'
import type { JsonObject } from '../../core/json.ts'
import { type OperationRequest, operations } from '../../core/operation.ts'
import { promptTokens, type Usage } from '../../core/usage.ts'
import type { Target } from '../../manifest/target.ts'
import type { PluginRequest } from '../../plugin/contract.ts'
import type { Targets } from '../../routing/names/resolve.ts'
import { openCallMedia } from '../../upstream/files/inline.ts'
import type { OperationAnswer } from '../../upstream/operation-answer.ts'
import { admitOperation, countableTexts } from '../admission/admission.ts'
import { measureUnseenOperation } from '../attempt/measured-reply.ts'
import { hasEndpoint, isAskedByChat, mostAt } from '../attempt/operation-by-chat.ts'
import { callOperation } from '../attempt/operation-call.ts'
import type { AbleContext, CallKind, Serving } from '../call-kind.ts'
import { refuseLargeTexts } from '../open/request-bounds.ts'
import { operationAnswerOfPlugin, readableReply } from '../plugins/operation-answer.ts'
import { eventText } from '../reply/operation-facts.ts'
import { operationReply } from '../reply/operation-reply.ts'
import { isLarger } from '../targets/unable-targets.ts'
import type { AdmittedCall, ReadCall, RestrictedBody, Services } from '../types.ts'

/** A request for an operation that has been read. */
export type ReadOperation = ReadCall & { request: OperationRequest }

/** Returns the call kind of an operation: anything but a conversation that a model can be asked for. */
export function operationKind(api: OperationApi): CallKind<ReadOperation, OperationAnswer> {
  const { models, api: name } = operations[api.operation]
  return {
    api: name,
    operation: api.operation,
    form: api.form,
    json: api.json,
    mediaParam: 'images',
    async read(body, { signal }) {
      const request = api.read(body)
      return readingOf(api.measure ? await api.measure(request, signal) : request)
    },
    requireBounds: ({ request }, { maxValues }) => refuseLargeTexts(request, maxValues),
    // Some operations can be done by models for conversations as well.
    purpose: (_, explanation) => ({
      apis: models,
      serves: (target) => hasEndpoint(target, api) || isAskedByChat(target, api),
      name: `endpoint for ${name}`,
      explanation,
    }),
    promptTokens: ({ request }) => promptTokens(api.estimate(request)),
    content: ({ request }) => bodyOf(request),
    // Fields that the API does not have are sent where the body is edited: nothing in them may decide what only the router decides.
    restricted: restrictedBody,
    able: (targets, read, context) => ableTargets(api, { targets, read }, context),
    reserve(applicant, services) {
      const { read, at, counted } = applicant
      const { request } = read
      const most = (target: Target) => mostAt(target, { api, request, at, counted })
      const estimate = api.estimate(request)
      const abandoned = sentUsage(api, request, estimate)
      return admitOperation({ ...applicant, most, promptTokens: promptTokens(estimate), abandoned }, services)
    },
    countable(applicant, services) {
      const { read, at } = applicant
      const { request } = read
      const costAt = (target: Target, counted: number) => mostAt(target, { api, request, at, counted }).nanoUsd
      const texts = api.texts?.(request)
      return texts && countableTexts(applicant, { texts, costAt }, services)
    },
    ordering({ request: { model, user } }) {
      const request = { model, messages: [], origin: { api: 'chat' as const, body: {} } }
      return { request: user === undefined ? request : { ...request, user }, generates: false }
    },
    serve: (admitted, services) => servingOf(admitted, api, services),
    plugins: {
      given: ({ request: { operation, model, fields } }) => ({ operation, model, fields }),
      accept: ({ call: { id }, read: { request } }) => ({
        request: (changed) => void requestOf(api, request, changed),
        reply: readableReply({ id, api, request }),
      }),
      changed: (read, asked) => {
        const request = requestOf(api, read.request, asked)
        return { ...read, model: request.model, request }
      },
      answer: (answer, { call: { id }, read: { request }, plugins, explanation }, end) =>
        operationAnswerOfPlugin(answer, { id, api, request, plugins, explanation }, end),
    },
  }
}

/** Leaves out the models that cannot do what is asked. Throws RouterError where none can. */
function ableTargets(
  { checkModel }: OperationApi,
  { targets, read: { request } }: { targets: Targets; read: ReadOperation },
  { explanation }: Pick<AbleContext, 'explanation'>,
): Targets {
  if (!checkModel) return targets
  let reason: unknown
  const [first, ...others] = targets.filter((target) => {
    try {
      if (target.entry) checkModel(request, target.entry)
      return true
    } catch (thrown) {
      reason ??= thrown
      explanation?.skip(target, 'able', asRouterError(thrown).message)
      return false
    }
  })
  if (!first) throw reason
  return [first, ...others]
}

function restrictedBody({ request }: ReadOperation): RestrictedBody {
  const { unread, operation } = request
  const body = bodyOf(request)
  const uses = resourceUses(body, (name) => operation === 'rerank' && name === 'documents')
  return { api: 'chat', operation, body: unread, mayStore: false, resources: { body, uses } }
}

function readingOf(request: OperationRequest): ReadOperation {
  const { model, stream, routing, user, requesty, unread } = request
  return {
    ...{ model, stream, routing },
    described: { user, requesty },
    unknownFields: Object.keys(unread),
    body: () => bodyOf(request),
    request,
  }
}

/** Returns a body as plugins see it. */
function bodyOf({ model, fields, unread }: OperationRequest): JsonObject {
  return { model, ...fields, ...unread }
}

function servingOf(
  { call, read, key, route, media: inputs, admission, explanation, plugins }: AdmittedCall<ReadOperation>,
  api: OperationApi,
  { media: services, held }: Pick<Services, 'media' | 'held'>,
): Serving<OperationAnswer> {
  const { request } = read
  const { id, signal, keepAlive } = call
  const media = openCallMedia(services, { param: 'input', signal })
  const holds = route.rules.onCut === 'hold'
  const asked = { id, api, signal, afterMs: keepAlive.afterMs }
  const prepared = { call: asked, ...{ request, admission, explanation, plugins }, media: services }
  const { events } = api
  const isEvents = events !== undefined && api.wants(request) === 'events'
  return {
    canTake: (other, refusedBy, how) => how === 'larger' && isLarger(other, refusedBy, admission.promptTokens),
    ask(target, attempt) {
      const keep = (ids: readonly string[]) => held.remember(key.organization, target.provider.slug, ids)
      return callOperation(target, { request, api, inputs, media, admission, holds, keep }, attempt)
    },
    reportedModel: ({ model }) => model,
    measure: (answer, target) => measureUnseenOperation(answer, { target, api, request, admission }),
    reply: (answered) => operationReply(answered.answer, { ...answered, prepared }),
    ...(isEvents && { failEvent: (error) => eventText(events.fail(error), events.named) }),
  }
}

/** Returns the usage of a client that leaves before the answer: the seconds of its sound, not those of what would be spoken. */
function sentUsage(api: OperationApi, request: OperationRequest, estimate: Usage): Usage {
  const { seconds, ...usage } = { ...estimate, ...api.count(request) }
  return { ...usage, ...(request.audio && seconds !== undefined && { seconds }) }
}

/** Returns the request as plugins changed it, read as if the client had sent it. Throws RouterError. */
function requestOf(api: OperationApi, request: OperationRequest, asked: PluginRequest): OperationRequest {
  if (!('fields' in asked)) return request
  const { stream, ...others } = asked.fields
  const kept = request.fields.stream === undefined ? {} : { stream: request.fields.stream }
  const fields = { ...others, ...kept }
  // A request with files is not JSON: its fields are taken as they are.
  const isForm = request.files.length > 0
  const read = isForm ? fields : api.read({ json: { ...fields, model: asked.model } }).fields
  return { ...request, model: asked.model, fields: read }
}
