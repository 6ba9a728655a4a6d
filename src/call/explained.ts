import { asRouterError } from '../core/errors.ts'
import type { Explanation } from '../routing/explanation.ts'

/** Answers a call that asks for an explanation; an error has it as well, once targets were looked for. Throws RouterError. */
export async function explained<Answer>(
  explanation: Explanation,
  answer: (explanation: Explanation) => Promise<Answer>,
): Promise<Answer> {
  try {
    return await answer(explanation)
  } catch (thrown) {
    throw explanation.addedTo(asRouterError(thrown))
  }
}
