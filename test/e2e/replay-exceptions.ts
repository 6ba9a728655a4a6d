import type { Recording } from '../helpers/recordings.ts'

/** Where an answer may differ from its recording or from the published schema, and why. */
const exceptions: { in: RegExp; what: RegExp; because: string }[] = [
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
    in: /^openrouter\//,
    what: /^usage\.cost\b/,
    because: 'the cost is that of the catalog: the provider’s own figure stands in the ledger beside it',
  },
  {
    in: /^perplexity\/stream__/,
    what: /^\/object must/,
    because: 'the last chunk of Perplexity is a kind of its own (chat.completion.done)',
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
    in: /^openai-compatible\/reasoning__vercel-gateway\.gemini|^azure-openai\/\w+(-\w+)*__azure\.grok/,
    what: /^total is/,
    because: 'the total of these servers leaves out what they count beside it: reasoning, or what was cached',
  },
]

const used = new Set<RegExp>()

/** The differences that no exception explains. */
export function unexplained(recording: Recording, differences: readonly string[]): string[] {
  return differences.filter((difference) => {
    const known = exceptions.find(({ in: where, what }) => where.test(recording.case) && what.test(difference))
    if (known) used.add(known.what)
    return !known
  })
}

/** Reasons of exceptions that explained nothing: they can go. */
export function idleExceptions(): string[] {
  return exceptions.filter(({ what }) => !used.has(what)).map(({ because }) => because)
}
