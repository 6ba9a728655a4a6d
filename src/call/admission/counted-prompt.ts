import { RouterError } from '../../core/errors.ts'
import { promptTexts } from '../../money/estimate-tokens.ts'
import type { Tokenizer } from '../../tokenizer/tokenizer.ts'
import { type AdmissionRequest, type AdmissionServices, fitsIfShort } from './admission.ts'

/**
 * The tokens of a prompt whose call was refused because it could cost too much, as far as its bytes tell; undefined where a
 * count would not help.
 */
export async function countedPrompt(
  refusal: unknown,
  call: AdmissionRequest,
  { admission, tokenizer }: { admission: AdmissionServices; tokenizer: Tokenizer },
): Promise<number | undefined> {
  const isExhausted = refusal instanceof RouterError && refusal.code === 'budget_exhausted'
  if (!isExhausted || !fitsIfShort(call, admission)) return undefined
  return await tokenizer.count(promptTexts(call.request))
}
