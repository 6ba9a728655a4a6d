import type { RouterError } from '../../core/errors.ts'
import { recordedError } from '../../core/refused-call.ts'
import { withoutKeys, withoutSecrets } from '../../core/secrets.ts'
import { withoutContent } from '../../core/without-content.ts'
import type { Target } from '../../manifest/target.ts'
import type { OrganizationRules } from '../../store/rules.ts'
import { shownOf } from '../../upstream/auth/secrets.ts'

/** Returns the message of a provider about a failed attempt, for the operator; undefined where there is none. */
export type ProviderMessage = (error: RouterError, target: Target) => string | undefined

/**
 * Returns a function that reads the provider's message from an error: without secrets, without addresses of the operator's network, and
 * without what it repeats of the request, which is `content()`. Undefined where such messages are not stored: they are switched off, or the
 * organization's data must not be retained.
 */
export function providerMessages(
  content: () => unknown,
  { rules, keepMs }: { rules: Pick<OrganizationRules, 'dataRules'>; keepMs: number },
): ProviderMessage | undefined {
  if (keepMs === 0 || rules.dataRules.data_retention === false) return undefined
  return (error, { provider }) => {
    const words = wordsIn(error)
    if (words === undefined) return undefined
    const text = withoutContent(shownOf(provider, words).slice(0, maxRead), content())
    return withoutForeignKeys(withoutSecrets(text)).slice(0, maxLength).toWellFormed()
  }
}

/** Characters: enough for what is stored, and for what is left out of it. */
const maxRead = 2_000
const maxLength = 500

/** Returns what a provider wrote, or what is wrong with its answer; messages of the router's own are in the ledger anyway. */
function wordsIn(error: RouterError): string | undefined {
  const { quotes, forLog, message, provider } = error
  if (quotes) return forLog ?? message
  if (provider === undefined || recordedError(error).message !== undefined) return undefined
  // The excerpt of an answer may be what the model wrote; a page of HTML is what a proxy wrote.
  return message
    .replace(/((?:is not JSON|not an object|without a finish reason)[^:]*): *(?!<).*$/s, '$1')
    .replace(/: *[[{"].*$/s, '')
}

/** Hides what looks like a key, besides the ids by which providers find a request. */
function withoutForeignKeys(text: string): string {
  return text
    .split(/(\breq(?:uest)?[-_]\w+)/)
    .map((piece, index) => (index % 2 === 1 ? piece : withoutKeys(piece)))
    .join('')
}
