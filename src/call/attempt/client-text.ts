import type { JsonObject } from '../../core/json.ts'
import { jsonTextInSteps } from '../../core/json-pieces.ts'
import type { MaybePromise } from '../../plugin/contract.ts'
import { maxInOneStep, yieldBetween } from '../../runtime/event-loop.ts'

/** Returns the JSON text of an answer; other calls run while a long one is written. */
export function clientText(answer: JsonObject): MaybePromise<string> {
  return jsonTextInSteps(answer, maxInOneStep, yieldBetween())
}
