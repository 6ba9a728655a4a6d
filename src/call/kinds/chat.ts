import type { ClientApi } from '../../api/client-api.ts'
import { letsProviderAct } from '../../core/request.ts'
import { admit, countableConversation, countableTexts } from '../admission/admission.ts'
import { attemptOf } from '../attempt/attempt.ts'
import { neutralStream } from '../attempt/other-format.ts'
import { callProvider, type ProviderResult } from '../attempt/provider-call.ts'
import { measureUnseen } from '../attempt/unseen-rest.ts'
import type { Serving } from '../call-kind.ts'
import { chatAnswerOfPlugin } from '../plugins/chat-answer.ts'
import type { AnsweredAttempt } from '../reply/answered-attempt.ts'
import { wholeReply } from '../reply/client-reply.ts'
import { recoveryFor } from '../reply/recovery.ts'
import { streamedReply } from '../reply/streamed-reply.ts'
import { comparing } from '../targets/unable-targets.ts'
import type { AdmittedCall, Applicant, Services } from '../types.ts'
import { type ConversationKind, conversationIn, preparedFor, type ReadConversation } from './conversation.ts'

/** Returns the kind of conversations in a client API. */
export function chatKind(clientApi: ClientApi): ConversationKind<ProviderResult> {
  const shared = conversationIn(clientApi)
  return {
    ...shared,
    operation: 'chat',
    reserve: (applicant, services) => admit(conversationOf(applicant), services),
    countable(applicant, services) {
      const conversation = conversationOf(applicant)
      return countableTexts(conversation, countableConversation(conversation, services), services)
    },
    serve: (admitted, services) => servingOf(admitted, clientApi, services),
    plugins: {
      ...shared.plugins,
      answer: (answer, { call, read, plugins, explanation }, end) =>
        chatAnswerOfPlugin(answer, { ...read, call: { ...call, clientApi }, plugins, explanation }, end),
    },
  }
}

function conversationOf(applicant: Applicant<ReadConversation>) {
  return { ...applicant, request: applicant.read.request }
}

/** Returns the model that served, in the words of the provider. */
function reportedModel({ answer }: ProviderResult): string | undefined {
  return answer.kind === 'stream' ? answer.model : answer.reply.model
}

function servingOf(
  admitted: AdmittedCall<ReadConversation>,
  clientApi: ClientApi,
  services: Services,
): Serving<ProviderResult> {
  const { read, key, route, admission } = admitted
  const { request } = read
  const prepared = preparedFor(admitted, clientApi, services)
  const acts = letsProviderAct(request)
  const holds = route.rules.onCut === 'hold'
  const measure: Serving<ProviderResult>['measure'] = ({ answer }, target, begunMs) =>
    measureUnseen(answer, target, { ...prepared, begunMs })
  return {
    acts,
    canTake: comparing(request, admission.promptTokens),
    ask: (target, attempt) => callProvider(target, prepared, attempt, { holds }),
    reportedModel,
    measure,
    async reply(answered) {
      const { headers, trial, begunMs } = answered
      const { answer, translation } = answered.answer
      const attempt: AnsweredAttempt = {
        ...answered,
        prepared,
        translation,
        // Of the request as the client sent it: plugins may have changed the text of the turn.
        remember: (reply) => services.signatures.remember(key, read.turn.request, reply),
      }
      if (answer.kind === 'stream') {
        const attempts = (ask: Serving<ProviderResult>['ask']) =>
          attemptOf(admitted, { ask, acts, measure, reportedModel }, services)
        const recovery = recoveryFor({ trial, prepared, attempts, routing: services.routing, begunMs })
        const { afterMs } = admitted.call.keepAlive
        return { headers, body: await streamedReply(answer, attempt, { recovery, afterMs }) }
      }
      const body = await wholeReply(answer, attempt)
      return typeof body === 'string' ? { headers, body } : body
    },
    failEvent: (error) => neutralStream(prepared, request.model).fail(error),
  }
}
