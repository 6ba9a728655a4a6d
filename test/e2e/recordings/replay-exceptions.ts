import type { Recording } from '../../helpers/recordings.ts'
import type { ClientApi } from './replay.ts'

/** Where an answer may differ from its recording or from the published schema, and why. */
const exceptions: { api?: ClientApi; in: RegExp; what: RegExp; because: string }[] = [
  {
    in: /^groq\//,
    what: /^\/service_tier must/,
    because: 'Groq has words of its own for tiers (on_demand); what a provider of the same format says is passed on',
  },
  {
    in: /^openrouter\/annotations/,
    what: /^\/choices\/0\/(message|delta)\/annotations\/0/,
    because: 'annotations of files are given back to OpenRouter so that it need not read the file again',
  },
  {
    in: /^(openrouter|perplexity|openai-compatible)\//,
    what: /^usage\.cost\b/,
    because: 'the cost is that of the catalog: the provider’s own figure stands in the ledger beside it',
  },
  {
    in: /^openai-responses\/custom-tool/,
    what: /^\/choices\/0\/delta\/tool_calls\/0\/type must/,
    because: 'the published schema of chunks has no custom tools, that of whole replies has',
  },
  {
    in: /^xai\//,
    what: /^usage\.completion_tokens is/,
    because: 'xAI counts reasoning beside the completion, Chat Completions inside it',
  },
  {
    in: /^groq\/server-tools-stream/,
    what: /^usage\.(\w+_time) is undefined/,
    because: 'Groq tells usage in a place of its own here: it is written anew, and times are not usage',
  },
  {
    in: /^azure-openai\/\w+(-\w+)*__azure\.grok/,
    what: /^(total|usage\.(prompt|completion|total)_tokens) is/,
    because: 'the total of this server leaves out what it counts beside it: what was cached',
  },
  {
    in: /^openai-compatible\/reasoning__vercel-gateway\.gemini/,
    what: /^(total|usage\.(completion|total)_tokens|ledger\.(reasoning|estimated)) is/,
    because: 'the server counts reasoning beside the completion, and more of it',
  },
  {
    api: 'messages',
    in: /\/image-out/,
    what: /^\/content(_block|\/\d+)\b/,
    because: 'Claude draws nothing: a picture comes in the block that requests have for it',
  },
]

const used = new Set<object>()

/** The differences that no exception explains. Exceptions are of Chat Completions unless they name another API. */
export function unexplained(api: ClientApi, recording: Recording, differences: readonly string[]): string[] {
  return differences.filter((difference) => {
    const known = of(api).find(({ in: where, what }) => where.test(recording.case) && what.test(difference))
    if (known) used.add(known)
    return !known
  })
}

/** Reasons of exceptions that explained nothing: they can go. */
export function idleExceptions(...apis: ClientApi[]): string[] {
  return apis.flatMap(of).flatMap((exception) => (used.has(exception) ? [] : exception.because))
}

/** The exceptions as lines of text. */
export function listed(...apis: ClientApi[]): string {
  return apis
    .flatMap((api) => of(api).map(({ in: where, because }) => `- ${api}, ${where.source}: ${because}`))
    .join('\n')
}

function of(wanted: ClientApi) {
  return exceptions.filter(({ api = 'chat' }) => api === wanted)
}
