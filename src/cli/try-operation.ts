import type { Json, JsonObject } from '../core/json.ts'
import { triedEvents, triedReply, triedRequest } from '../manifest/check/operation-examples.ts'
import type { Provider } from '../manifest/provider.ts'
import type { Example } from '../manifest/read/layer.ts'
import { servedBy } from '../manifest/target.ts'
import { targetFacts } from '../manifest/target-facts.ts'

/** One input and the mapping's output; `notes` are further results, by name. */
export type Trial = { name: string; steps: { input: Json; output: Json }[]; notes: { [name: string]: Json } }

/** An example of an endpoint besides chat. */
export async function tryOperation(given: Provider, example: Example): Promise<Trial[]> {
  const { name, request, answers, events } = example
  const model = request?.model ?? ''
  const provider = servedBy(given, model)
  const trial = { provider, example, facts: targetFacts(provider, { model }) }
  const trials: Trial[] = []
  if (request) {
    const { body, query, dropped } = await triedRequest(trial)
    const notes = { dropped, ...(Object.keys(query).length > 0 && { query }) }
    trials.push({ name: `${name}: request`, steps: [{ input: request as JsonObject, output: body }], notes })
  }
  if (answers) {
    const steps = [{ input: answers, output: await triedReply(trial, answers) }]
    trials.push({ name: `${name}: reply`, steps, notes: {} })
  }
  if (events) {
    const steps = [{ input: events, output: await triedEvents(trial, events) }]
    trials.push({ name: `${name}: stream`, steps, notes: {} })
  }
  return trials
}
