import { errorBody } from '../../core/errors.ts'
import { isObject, type Json, type JsonObject } from '../../core/json.ts'
import type { OperationRequest } from '../../core/operation.ts'
import type { OperationEvents, OperationFacts } from '../operation-api.ts'
import { inputsIn } from './embedding-input.ts'
import { usageBlock } from './shared.ts'

/** The events of legacy completions. They end when every choice has. */
export const completionEvents: OperationEvents = {
  named: false,
  terminator: 'data: [DONE]\n\n',
  ofWhole: ({ choices, usage: _, ...reply }) =>
    choicesIn(choices).map((choice, index) => ({ ...reply, choices: [choiceOf(choice, index)] })),
  collect(known, { choices }, request) {
    const collected = known as Collected
    collected.asked ??= requestedChoices(request)
    collected.texts ??= {}
    collected.finished ??= []
    for (const { index = 0, text, finish_reason: reason } of choicesIn(choices)) {
      const name = String(index)
      if (typeof text === 'string') collected.texts[name] = (collected.texts[name] ?? '') + text
      if (reason && !collected.finished.includes(name)) collected.finished.push(name)
    }
    return collected as JsonObject
  },
  isEnd({ choices }, known = {}) {
    const { asked = 1, finished = [] } = known as Collected
    return finished.length >= asked && choicesIn(choices).some(({ finish_reason: reason }) => reason)
  },
  isHidden: ({ choices }) => choicesIn(choices).length === 0,
  write({ choices, usage: _, ...event }, facts) {
    return {
      ...beginning(event, facts),
      choices: choicesIn(choices).map(choiceOf),
      ...(wantsUsage(facts.request) && { usage: null }),
    }
  },
  after(facts, last) {
    if (!wantsUsage(facts.request)) return []
    const { choices: _, usage: __, ...event } = last
    return [{ ...beginning(event, facts), choices: [], usage: completionUsage(facts) }]
  },
  fail: errorBody,
}

/** Facts collected from a stream: texts and finished choices by their index. */
type Collected = { asked?: number; texts?: { [index: string]: string }; finished?: string[] }

/** Returns the number of choices that a request gets. */
export function requestedChoices({ fields: { n = 1, prompt } }: OperationRequest): number {
  return Number(n) * inputsIn(prompt)
}

/** Returns all texts of a reply, or of the facts collected about one. */
export function textsIn(reply: JsonObject | undefined): string {
  const { choices, texts } = reply ?? {}
  if (isObject(texts)) return Object.values(texts).join('')
  return choicesIn(choices)
    .map(({ text }) => (typeof text === 'string' ? text : ''))
    .join('')
}

/** Writes a choice with all members that this API defines for one. */
export function choiceOf(
  { text = '', index, logprobs = null, finish_reason = null, ...others }: JsonObject,
  place = 0,
): JsonObject {
  return { text, index: index ?? place, logprobs, finish_reason, ...others }
}

/** The counts of a call, and its cost. */
export function completionUsage(facts: OperationFacts): JsonObject {
  return usageBlock(facts, (prompt, completion) => ({
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
  }))
}

function beginning(event: JsonObject, { id, model, now }: { id: string; model: string; now?: number }): JsonObject {
  const created = now ?? Math.floor(Date.now() / 1_000)
  return { id: `cmpl-${id}`, created, ...event, object: 'text_completion', model }
}

function wantsUsage({ fields }: OperationRequest): boolean {
  return isObject(fields.stream_options) && fields.stream_options.include_usage === true
}

function choicesIn(choices: Json | undefined): JsonObject[] {
  return Array.isArray(choices) ? choices.filter(isObject) : []
}
